import type { Bug } from "./bug.ts";

/** Bugs about identity: sign-in, people, roles. */
export const AUTH_BUGS: readonly Bug[] = [
  {
    name: "cookie-alone-suffices",
    what: "the stored hash covers the cookie's half alone, so the page key does not matter",
    file: "src/http/authenticate.ts",
    right: "return { ...half, key, hash: sha256Hex(",
    wrong: "return { ...half, key, hash: sha256Hex(half.text || ",
    caughtBy: { file: "tests/http/sign-in.test.ts", title: "the cookie alone reads nothing" },
  },
  {
    name: "bearer-may-decide",
    what: "a bearer token with a person's role counts as that person",
    file: "src/http/answer.ts",
    right: 'if ("anyone" in rule || rule.person !== true || token.kind === "session") return;',
    wrong: 'if ("anyone" in rule || rule.person !== true || token.kind !== "link") return;',
    caughtBy: { file: "tests/http/people.test.ts", title: "a bearer token neither approves" },
  },
  {
    name: "program-named-like-a-person",
    what: "a program's name is compared with people's names by exact spelling",
    file: "src/http/sign-in.ts",
    right: "const folded = foldName(subject);\n  const isPerson",
    wrong: "const folded = subject;\n  const isPerson",
    caughtBy: {
      file: "tests/http/people.test.ts",
      title: "an admin makes tokens for programs only",
    },
  },
  {
    name: "inviter-confirms",
    what: "the admin who invited confirms the invitation under another spelling of their name",
    file: "src/store/tokens.ts",
    right: "if (foldName(actor) === foldName(madeBy)) {",
    wrong: "if (actor === madeBy) {",
    caughtBy: { file: "tests/http/people.test.ts", title: "with two admins neither" },
  },
  {
    name: "link-without-code",
    what: "the link of the confirming admin signs in without the inviter's code",
    file: "src/http/sign-in.ts",
    right:
      "await tokens.confirm(id, (half) => ({ hash: withCode(text, half), lifeMs }), { actor });",
    wrong:
      "await tokens.confirm(id, () => ({ hash: readSecret(text)?.hash ?? withCode(text, text), lifeMs }), { actor });",
    caughtBy: { file: "tests/http/people.test.ts", title: "with two admins neither" },
  },
  {
    name: "signed-out-admin-forgotten",
    what: "an admin whose sessions were ended no longer counts, so the other one is alone",
    file: "src/http/sign-in.ts",
    right: 'for await (const { subject, roles } of tokensOf(store, "session")) {',
    wrong:
      'for await (const { subject, roles, isLive } of tokensOf(store, "session")) { if (!isLive) continue;',
    caughtBy: { file: "tests/http/people.test.ts", title: "ending the other admin" },
  },
  {
    name: "restore-keeps-tokens",
    what: "a restore leaves the tokens of the backup alive",
    file: "src/gate/restore.ts",
    right: "if (isLive && (await tokens.end(id, REASON, { actor }))) count += 1;",
    wrong: "if (isLive && id === actor && (await tokens.end(id, REASON, { actor }))) count += 1;",
    caughtBy: { file: "tests/whole/restore-access.test.ts", title: "a restore ends every token" },
  },
  {
    name: "sign-in-never-old",
    what: "an irreversible approval is accepted from a sign-in of any age",
    file: "src/http/authenticate.ts",
    right: "return clock.now() - fromIso(token.createdAt) <= signIn.freshMs;",
    wrong: "return clock.now() - fromIso(token.createdAt) <= signIn.sessionMs;",
    caughtBy: { file: "tests/http/people.test.ts", title: "fifteen minutes after signing in" },
  },
];
