import { describe, expect, test } from "vitest";
import type { GateAnswer } from "../model/finding.ts";
import type { CallFacts } from "./answers.ts";
import { checkPermission, seeCall } from "./decide.ts";
import { compilePolicy, type Rule } from "./policy.ts";

const facts = (...urls: readonly string[]): CallFacts => ({
  tool: "fetch",
  permissionClass: "webfetch",
  input: {},
  resources: urls.map((url) => ({ kind: "url", url })),
  tenant: "t",
  sessionId: "s",
  chain: ["agent"],
  now: 0,
});

function policyOf(...rules: readonly Partial<Rule>[]) {
  const whole = rules.map(
    (rule, index): Rule => ({
      id: `r${index}`,
      effect: "allow",
      tool: "fetch",
      reason: "Test.",
      ...rule,
    }),
  );
  return compilePolicy({ version: "1", rules: whole });
}

const policy = policyOf(
  { host: "example.com" },
  { host: "*.docs.dev" },
  { host: "api.example.com:8443" },
  { host: "bücher.example.org" },
  { host: "93.184.216.34" },
  { host: "plain.example.com:80" },
);

const judge = (...urls: readonly string[]): GateAnswer =>
  checkPermission(seeCall(facts(...urls)), { policy, fileRoots: [] });

test.each([
  "https://example.com/",
  "https://EXAMPLE.com/a?b#c",
  "https://example.com./x",
  "https://example.com:443/",
  "https://ex%61mple.com/",
  "https://a.docs.dev/",
  "https://a.b.docs.dev/",
  "https://api.example.com:8443/",
  "https://b%C3%BCcher.example.org/",
  "https://xn--bcher-kva.example.org/",
  "https://BÜCHER.example.org/",
  "https://93.184.216.34/",
  "https://0x5d.0xb8.0xd8.0x22/",
  "http://plain.example.com/",
  "https:\\\\example.com\\x",
])("allowed by its host: %s [S2-42 I-23]", (url) => {
  expect(judge(url).answer).toBe("allow");
});

test.each([
  "https://example.com.evil.org/",
  "https://evilexample.com/",
  "https://evil.org/example.com",
  "https://evil.org/?u=https://example.com/",
  "https://evil.org/#@example.com",
  "https://evil.org\\@example.com/",
  "https://docs.dev/",
  "https://xdocs.dev/",
  "https://api.example.com/",
  "https://example.com:8443/",
  "http://example.com/",
  "https://plain.example.com/",
  "https://examp1e.com/",
  "https://exаmple.com/",
  "https://sub.example.com/",
])("asked about, whatever else its text holds: %s [S2-42 I-23]", (url) => {
  expect(judge(url).answer).toBe("ask");
});

describe("private addresses are denied by their text [T18]", () => {
  // biome-ignore format: a list
  const hosts = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.0.0.1.",
    "127.255.255.254", "0", "0.0.0.0", "10.0.0.1", "012.0.0.1", "0xa.0.0.1", "10.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "0xc0a80101", "3232235777", "169.254.169.254", "0xa9fea9fe", "2852039166", "169.254.169.254.", "100.64.0.1",
    "100.100.100.200", "192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "203.0.113.5",
    "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[fe80::1]",
    "[febf::1]", "[fc00::1]", "[fd00:ec2::254]", "[fec0::1]", "[ff02::1]", "[2001:db8::1]", "[2001::1]", "[100::1]", "[64:ff9b:1::1]",
    "localhost", "LOCALHOST", "localhost.", "foo.localhost", "printer.local", "metadata.google.internal", "metadata",
    "instance-data", "kubernetes", "db.internal", "x.home.arpa", "router.lan", "①②⑦.⓪.⓪.①", "127。0。0。1", "loc%61lhost", "lOcAlHoSt",
    "[::ffff:10.0.0.1]", "[::ffff:192.168.0.1]", "0300.0250.1.1", "192.168.257", "[::ffff:c0a8:101]",
  ];
  test.each(hosts)("%s", (host) => {
    for (const url of [`http://${host}/`, `https://${host}:8080/x`]) {
      expect(judge(url).answer, url).toBe("deny");
    }
  });

  test("a rule cannot allow them", () => {
    for (const host of ["127.0.0.1", "localhost", "[::1]", "169.254.169.254:80"]) {
      const opened = policyOf({ host });
      for (const scheme of ["http", "https"]) {
        const call = seeCall(facts(`${scheme}://${host}/`));
        expect(checkPermission(call, { policy: opened, fileRoots: [] }).answer).toBe("deny");
      }
    }
  });

  test("public addresses next to them only ask", () => {
    // biome-ignore format: a list
    const open = ["126.255.255.255", "128.0.0.1", "11.0.0.1", "172.15.0.1", "172.32.0.1", "192.167.1.1", "169.253.1.1", "8.8.8.8",
      "100.63.0.1", "100.128.0.1", "223.255.255.255", "[2606:4700::1111]", "[2a00::1]", "[::ffff:8.8.8.8]", "[64:ff9b::8.8.8.8]"];
    for (const host of open) expect(judge(`https://${host}/`).answer, host).toBe("ask");
  });
});

test.each([
  "file:///etc/passwd",
  "ftp://example.com/",
  "gopher://example.com/",
  "data:text/plain,x",
  "javascript:alert(1)",
  "ws://example.com/",
  "//example.com/",
  "example.com",
  "",
  "https://",
  "https://user@example.com/",
  "https://user:pass@example.com/",
  "https://example.com@evil.org/",
  "https://:pw@example.com/",
  "https://exa mple.com/",
  "https://example.com:99999/",
  "https://[::1",
  "https://./",
])("not an address that can be fetched: %j [I-23 T18]", (url) => {
  expect(judge(url).answer).toBe("deny");
});

test("each address of a call is checked [I-23]", () => {
  expect(judge("https://example.com/", "https://a.docs.dev/").answer).toBe("allow");
  expect(judge("https://example.com/", "https://evil.org/").answer).toBe("ask");
  expect(judge("https://example.com/", "http://127.0.0.1/").answer).toBe("deny");
  expect(judge().answer).toBe("ask");
});

test("messages name the host and hide query and user name [I-23]", () => {
  const { findings } = judge(
    "https://me:hunter2@evil.org/?token=hunter3",
    "https://open.org/?token=hunter4",
  );
  const text = findings.map(({ message }) => message).join("\n");
  expect(text).toContain('"https://evil.org/"');
  expect(text).toContain('"open.org" (port 443)');
  expect(text).not.toMatch(/hunter/);
});
