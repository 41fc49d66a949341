import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { sampleCall } from "../define-tool.ts";
import { type HttpOptions, httpFetch, httpSend } from "./http.ts";

// Two local listeners. The front represents a public server: its one address and port are allowed. The trap listens on
// every address, and on 127.0.0.1 also at the front's port, to catch a second lookup of a name.
const FRONT = "127.0.0.2";
const servers: Server[] = [];
let trapped: string[] = [];
let trapPort = 0;
let frontPort = 0;
let answerFront: RequestListener;

beforeEach(async () => {
  trapped = [];
  answerFront = (_request, response) => response.end("front");
  const trap = () => {
    const server = createServer((_request, response) => response.end("trap"));
    server.on("connection", (socket) => trapped.push(`${socket.localAddress}:${socket.localPort}`));
    return server;
  };
  trapPort = await listen(trap(), "::", 0);
  frontPort = await listen(
    createServer((request, response) => answerFront(request, response)),
    FRONT,
    0,
  );
  await listen(trap(), "127.0.0.1", frontPort);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
});

function listen(server: Server, host: string, port: number): Promise<number> {
  servers.push(server);
  return new Promise((resolve) =>
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port)),
  );
}

const options = (more: Partial<HttpOptions> = {}): HttpOptions => ({
  unsafeAllowAddresses: [`${FRONT}:${frontPort}`],
  resolver: async () => [FRONT],
  timeoutMs: 3_000,
  ...more,
});

/** Resolves to a refusal's code; anything that got through is seen by the trap. */
async function attempt(url: string, more: Partial<HttpOptions> = {}, sends = false) {
  const tool = sends ? httpSend(options(more)) : httpFetch(options(more));
  const { data } = await tool.execute(sampleCall(sends ? { url, method: "POST" } : { url }));
  const { refused, redirectTo } = data as { refused?: string; redirectTo?: string };
  return redirectTo === undefined ? refused : "given back";
}

/** Spellings of private addresses in a URL. */
function insideHosts(): string[] {
  const own = Object.values(networkInterfaces()).flatMap((all) =>
    (all ?? []).map(({ address, family }) => (family === "IPv6" ? "" : address)),
  );
  const v4 = [
    "127.0.0.1",
    "127.0.0.3",
    "127.255.255.254",
    "0.0.0.0",
    "169.254.169.254",
    "10.0.0.1",
    "192.168.1.1",
    "172.16.0.1",
    "100.100.100.200",
    ...own.filter((address) => address !== "" && address !== "127.0.0.1" && isPrivate(address)),
  ];
  const hex = (n: number, width = 1) => n.toString(16).padStart(width, "0");
  const spelled = v4.flatMap((address) => {
    const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
    const groups = `${hex(a * 256 + b)}:${hex(c * 256 + d)}`;
    const octal = [a, b, c, d].map((part) => `0${part.toString(8)}`).join(".");
    return [
      address,
      `${address}.`,
      String(((a * 256 + b) * 256 + c) * 256 + d),
      `0x${[a, b, c, d].map((part) => hex(part, 2)).join("")}`,
      octal,
      [a, b, c, d].map((part) => `0x${hex(part)}`).join("."),
      `${a}.${(b * 256 + c) * 256 + d}`,
      `${a}.${b}.${c * 256 + d}`,
      `0${a.toString(8)}.0x${hex(b)}.${c}.${d}`,
      address.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
      address.replace(/^\d/, (digit) => `%3${digit}`),
      `[::ffff:${address}]`,
      `[::ffff:${groups}]`,
      `[0:0:0:0:0:ffff:${groups}]`,
      `[::${address}]`,
      `[64:ff9b::${address}]`,
      `[64:ff9b:1::${groups}]`,
      `[2002:${groups}::]`,
      `[::ffff:0:${address}]`,
    ];
  });
  return [
    ...spelled,
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
  ];
}

function isPrivate(address: string): boolean {
  return /^(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01])|169\.254|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\./.test(
    address,
  );
}

test("the trap catches a connection that is let through, so that the next tests can fail [T18]", async () => {
  const allowed = { unsafeAllowAddresses: [`127.0.0.1:${trapPort}`] };
  expect(await attempt(`http://127.0.0.1:${trapPort}/`, allowed)).toBeUndefined();
  expect(trapped).toHaveLength(1);
});

test("no spelling of an inner address is connected to, from fetch, send or a redirect [T18]", async () => {
  let cases = 0;
  let location = "";
  answerFront = (_request, response) => response.writeHead(302, { location }).end();
  for (const host of insideHosts()) {
    for (const sends of [false, true]) {
      expect(await attempt(`http://${host}:${trapPort}/`, {}, sends), host).toBe("not_allowed");
    }
    expect(await attempt(`https://${host}:${trapPort}/`), host).toBe("not_allowed");
    // A header contains bytes only, so a server would send it like this.
    location = Buffer.from(`http://${host}:${trapPort}/`).toString("latin1");
    expect(["given back", "not_allowed"], host).toContain(
      await attempt(`http://front.test:${frontPort}/`),
    );
    cases += 4;
  }
  expect(cases).toBeGreaterThanOrEqual(300);
  expect(trapped).toEqual([]);
});

test("user names, backslashes, other schemes and inner names do not get in [T18]", async () => {
  const at = `127.0.0.1:${trapPort}`;
  const urls = [
    `http://example.com@${at}/`,
    `http://example.com:80@${at}/`,
    `http://example.com%2f@${at}/`,
    `http://a:b@${at}/`,
    `http://${at}\\@example.com/`,
    `http://${at}#@example.com/`,
    `http://${at}?@example.com/`,
    `http:${at}/`,
    `http:/${at}/`,
    `http:\\\\${at}/`,
    `\thttp://${at}/`,
    `ht\ntp://${at}/`,
    `//${at}/`,
    `ftp://${at}/`,
    `file:///etc/passwd`,
    `gopher://${at}/`,
    `data:text/plain,x`,
    `ws://${at}/`,
    `http://`,
    `${at}`,
    ``.padEnd(3),
  ];
  const lying = { resolver: async () => ["127.0.0.1"] };
  for (const url of urls) expect(await attempt(url, lying), url).toBe("not_allowed");
  // Also where the host behind the user name could be reached.
  for (const user of ["a", "a:b", ":b", "example.com"]) {
    expect(await attempt(`http://${user}@front.test:${frontPort}/`), user).toBe("not_allowed");
  }
  for (const name of [
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "metadata.google.internal",
    "rebind.test",
    "127.0.0.1.nip.io",
  ]) {
    expect(await attempt(`http://${name}:${trapPort}/`, lying), name).toBe("not_allowed");
  }
  expect(trapped).toEqual([]);
});

test("whatever a resolver answers, private addresses among it are refused [T18]", async () => {
  const answers = [
    ["127.0.0.1"],
    ["8.8.8.8", "127.0.0.1"],
    ["127.0.0.1", "8.8.8.8"],
    ["::1"],
    ["::ffff:127.0.0.1"],
    ["::ffff:7f00:1"],
    ["0.0.0.0"],
    ["169.254.169.254"],
    ["fe80::1%lo"],
    ["localhost"],
    ["0177.0.0.1"],
    ["127.1"],
    ["2130706433"],
    [""],
    [],
    ["2002:7f00:1::"],
    ["64:ff9b::7f00:1"],
    ["::7f00:1"],
  ];
  for (const answer of answers) {
    for (const sends of [false, true]) {
      const refused = await attempt(
        `http://a.test:${trapPort}/`,
        { resolver: async () => answer },
        sends,
      );
      expect(refused, JSON.stringify(answer)).toBe("not_allowed");
    }
  }
  expect(await attempt("http://a.test/", { resolver: () => Promise.reject(new Error("no")) })).toBe(
    "not_allowed",
  );
  expect(trapped).toEqual([]);
});

test("a resolver that flips is asked once per hop, and the checked address is the one used [T18]", async () => {
  answerFront = (_request, response) => response.end("front");
  for (let round = 0; round < 50; round += 1) {
    let asked = 0;
    const resolver = async () => [asked++ === 0 ? FRONT : "127.0.0.1"];
    const url = `http://flip.test:${frontPort}/`;
    const { data } = await httpFetch(options({ resolver })).execute(sampleCall({ url }));
    expect(data).toMatchObject({ status: 200, content: "front" });
    expect(asked).toBe(1);
  }
  // The second hop of the same host is looked up, and refused, like the first.
  answerFront = (_request, response) => response.writeHead(302, { location: "/next" }).end();
  let asked = 0;
  const resolver = async () => [asked++ === 0 ? FRONT : "127.0.0.1"];
  expect(await attempt(`http://flip.test:${frontPort}/`, { resolver })).toBe("not_allowed");
  expect(asked).toBe(2);
  expect(trapped).toEqual([]);
});

test("chains of redirects are checked at every hop and end after five [T18]", async () => {
  for (let length = 1; length <= 7; length += 1) {
    answerFront = (request, response) => {
      const hop = Number(request.url?.slice(1));
      const location = hop >= length ? `http://127.0.0.1:${trapPort}/` : `/${hop + 1}`;
      response.writeHead([301, 302, 303, 307, 308][hop % 5] ?? 302, { location }).end();
    };
    const refused = await attempt(`http://front.test:${frontPort}/1`);
    expect(refused).toBe(length <= 6 ? "given back" : "unusable");
  }
  expect(trapped).toEqual([]);
});

test("http.send follows no redirect, and proxies of the environment are not used [T18]", async () => {
  answerFront = (_request, response) =>
    response.writeHead(307, { location: `http://127.0.0.1:${trapPort}/` }).end();
  const call = sampleCall({ url: `http://front.test:${frontPort}/`, method: "POST" });
  expect(await httpSend(options()).execute(call)).toMatchObject({
    isError: true,
    data: { status: 307 },
  });
  for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"]) {
    vi.stubEnv(name, `http://127.0.0.1:${trapPort}`);
  }
  vi.stubEnv("NODE_USE_ENV_PROXY", "1");
  answerFront = (_request, response) => response.end("front");
  expect(await attempt(`http://front.test:${frontPort}/`)).toBeUndefined();
  expect(trapped).toEqual([]);
});

test("only hosts of the operator's list are asked, redirects included [T18]", async () => {
  answerFront = (_request, response) =>
    response.writeHead(302, { location: `http://evil.test:${frontPort}/` }).end();
  const allowHosts = ["front.test", "*.good.test"];
  expect(await attempt(`http://evil.test:${frontPort}/`, { allowHosts })).toBe("not_allowed");
  expect(await attempt(`http://good.test:${frontPort}/`, { allowHosts })).toBe("not_allowed");
  expect(await attempt(`http://xgood.test:${frontPort}/`, { allowHosts })).toBe("not_allowed");
  expect(await attempt(`http://front.test:${frontPort}/`, { allowHosts })).toBe("given back");
  answerFront = (_request, response) => response.end("front");
  expect(await attempt(`http://a.good.test:${frontPort}/`, { allowHosts })).toBeUndefined();
});
