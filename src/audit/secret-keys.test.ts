import { expect, test } from "vitest";
import { busyMs } from "../../tests/support/busy-time.ts";
import { createKeyTest } from "./secret-shapes.ts";

const judge = createKeyTest({});

test.each(
  `password PASSWORD Password passWord pass_word pass-word userPassword user_password DB_PASSWORD password2
  passwordHash newPassword passwd pwd passphrase secret clientSecret client-secret secrets secret_id token accessToken
  access_token refreshToken X-Auth-Token idToken apiKey api_key apikey API-KEY APIKey x-api-key X_API_KEY openaiApiKey
  authorization Authorization proxy-authorization cookie Set-Cookie cookies privateKey private_key PRIVATEKEY
  sshPrivateKey accessKey secretAccessKey credential credentials awsCredentials creds bearer jwt otp totp cvv cvc2
  cardNumber card_number ssn ｐａｓｓｗｏｒｄ`.split(/\s+/),
)("%s is a secret", (key) => {
  expect(judge(key)).toBe("secret");
});

test.each(
  `name id to from state reason secretary tokenizer tokenize compassion passenger bypass passport author
  authorized authorizationPolicy cookieConsentVersion keyboard key idempotencyKey tokenCount token_type tokenType
  secretRef secret_name secretArn credentialId tokenUrl token_endpoint expires_at client_secret_expires_at password_policy
  passwordRequired monkey cart description raw_sha256 session policy_version`.split(/\s+/),
)("%s is plain", (key) => {
  expect(judge(key)).toBe("plain");
});

test("numbers under tokens and pass are counts", () => {
  for (const key of ["tokens", "max_tokens", "totalTokens", "pass"])
    expect(judge(key)).toBe("counted");
});

test("names can be added and taken off, by name or by a test", () => {
  const own = createKeyTest({
    secretKeys: ["pin", "voice print", (key) => key.startsWith("x-internal-")],
    plainKeys: ["token"],
  });
  expect(own("PIN")).toBe("secret");
  expect(own("card_pin")).toBe("secret");
  expect(own("voicePrint")).toBe("secret");
  expect(own("x-internal-id")).toBe("secret");
  expect(own("spinner")).toBe("plain");
  expect(own("token")).toBe("plain");
  expect(own("access_token")).toBe("secret");
});

test("a name of a megabyte is judged in no time [T27]", () => {
  for (const key of ["A".repeat(1 << 20), "aB".repeat(1 << 19), "_".repeat(1 << 20)]) {
    expect(busyMs(() => judge(key))).toBeLessThan(100);
  }
});
