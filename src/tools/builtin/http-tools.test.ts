import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
} from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isSallyportError } from "../../model/errors.ts";
import type { JsonObject } from "../../util/json.ts";
import { sampleCall } from "../define-tool.ts";
import { makeUndo } from "../tool-call.ts";
import { type HttpOptions, httpFetch, httpSend } from "./http.ts";

let server: Server;
let port = 0;
let seen: { method: string; url: string; headers: IncomingHttpHeaders; body: string }[] = [];
let answer: RequestListener;

beforeEach(async () => {
  seen = [];
  answer = (_request, response) => response.end("ok");
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      seen.push({ method, url, headers, body });
      answer(request, response);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  port = (server.address() as AddressInfo).port;
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

const options = (more: Partial<HttpOptions> = {}): HttpOptions => ({
  unsafeAllowAddresses: [`127.0.0.1:${port}`],
  resolver: async () => ["127.0.0.1"],
  timeoutMs: 5_000,
  ...more,
});
const at = (path: string, host = "a.test") => `http://${host}:${port}${path}`;
const get = (input: JsonObject, more: Partial<HttpOptions> = {}) =>
  httpFetch(options(more)).execute(sampleCall({ url: at("/"), ...input }));
const send = (input: JsonObject = {}, more: Partial<HttpOptions> = {}) =>
  httpSend(options(more)).execute(sampleCall({ url: at("/"), method: "POST", ...input }));

test("http.fetch returns decoded text, other bytes as base64, and reports a missing page", async () => {
  answer = (_request, response) =>
    response
      .writeHead(200, {
        "content-encoding": "gzip",
        "content-type": "text/plain; charset=iso-8859-1",
      })
      .end(gzipSync(Buffer.from("caf\xe9", "latin1")));
  expect((await get({})).data).toMatchObject({ status: 200, content: "café", encoding: "utf8" });
  answer = (_request, response) => response.end(Buffer.from([255, 254, 0]));
  expect((await get({})).data).toMatchObject({ encoding: "base64", content: "//4A" });
  answer = (_request, response) => response.writeHead(404).end("none");
  expect(await get({ method: "HEAD" })).toMatchObject({
    isError: true,
    data: { status: 404, content: "" },
  });
  expect(seen.at(-1)?.method).toBe("HEAD");
  expect(await get({ method: "POST" })).toMatchObject({ isError: true });
  expect(seen).toHaveLength(3);
});

test("a long answer is cut, also one that unpacks to be long, and a slow one is given up [T25]", async () => {
  answer = (_request, response) =>
    response
      .writeHead(200, { "content-encoding": "gzip" })
      .end(gzipSync(Buffer.alloc(50_000_000, "a")));
  const { data } = await get({}, { maxBytes: 1000 });
  expect(data).toMatchObject({ truncated: true, content: "a".repeat(1000) });
  answer = (_request, response) => {
    const more = () => response.write("a".repeat(65_536)) && setImmediate(more);
    response.on("drain", more);
    more();
  };
  expect((await get({}, { maxBytes: 1000 })).data).toMatchObject({ truncated: true });
  answer = (_request, response) => response.writeHead(200).write("never ends");
  expect(await get({}, { timeoutMs: 200 })).toMatchObject({
    isError: true,
    data: { refused: "timed_out" },
  });
  answer = (_request, response) => {
    response.writeHead(200, { "content-encoding": "gzip" }).write(gzipSync("cut").subarray(0, 12));
    response.destroy();
  };
  expect(await get({})).toMatchObject({ isError: true, data: { refused: "timed_out" } });
});

test("a redirect to another host is reported and not followed, so credentials stay where they belong [T18]", async () => {
  answer = (request, response) =>
    request.url === "/"
      ? response.writeHead(302, { location: at("/there", "b.test") }).end()
      : response.end("there");
  const credentials = () => ({ authorization: "Bearer canary" });
  const stopped = await get({}, { credentials });
  expect(stopped.data).toMatchObject({ status: 302, redirectTo: at("/there", "b.test") });
  expect(stopped.text).toContain("http.fetch");
  expect(seen).toHaveLength(1);
  expect(seen[0]?.headers).toMatchObject({ authorization: "Bearer canary" });
});

test("header fields that are not the agent's are refused before anything is sent [T18 T22]", async () => {
  const names = [
    "Host",
    "connection",
    "Content-Length",
    "Transfer-Encoding",
    "Proxy-Authorization",
    "X-Forwarded-For",
    "Authorization",
    "Cookie",
    "X-Api-Key",
    "X-Vault-Token",
    "a b",
    "a\r\nb",
    "",
  ];
  for (const name of names) {
    const result = await get({ headers: { [name]: "x" } });
    expect(result, name).toMatchObject({ isError: true, data: { refused: "not_allowed" } });
  }
  expect(await get({ headers: { a: "x\r\nHost: y" } })).toMatchObject({ isError: true });
  expect(seen).toEqual([]);
});

test("http.send sends the body once with the idempotency key, and has a guide instead of an undo", async () => {
  const tool = httpSend(options());
  const call = sampleCall({
    url: at("/x"),
    method: "PUT",
    headers: { "content-type": "text/plain" },
    body: "häl",
  });
  expect(await tool.dryRun?.(call)).toMatchObject({ impact: { bytes: 4 } });
  expect(seen).toEqual([]);
  const result = await tool.execute(call);
  expect(seen).toMatchObject([
    { method: "PUT", url: "/x", body: "häl", headers: { "idempotency-key": "key-1" } },
  ]);
  expect((await makeUndo(tool, call, result)).undo).toMatchObject({ irreversible: true });
  answer = (_request, response) => response.writeHead(422).end("bad");
  expect(await send()).toMatchObject({ isError: true, data: { status: 422, content: "bad" } });
});

test("http.send reports an unknown outcome when the answer was lost, and a refusal when nothing was sent [T8]", async () => {
  const outcome = async (listener: RequestListener, more: Partial<HttpOptions> = {}) => {
    answer = listener;
    return send({}, more).then(
      () => "answered",
      (error) =>
        isSallyportError(error, "outcome_unknown") && error.message.includes("may or may not"),
    );
  };
  expect(await outcome((request) => request.socket.destroy())).toBe(true);
  expect(await outcome((_request, response) => response.writeHead(504).end())).toBe(true);
  expect(await outcome(() => {}, { timeoutMs: 200 })).toBe(true);
  expect(seen).toHaveLength(3);
  const closed = createServer();
  await new Promise<void>((done) => closed.listen(0, "127.0.0.1", done));
  const free = (closed.address() as AddressInfo).port;
  await new Promise((done) => closed.close(done));
  const nobody = { unsafeAllowAddresses: [`127.0.0.1:${free}`] };
  const result = await send({ url: `http://a.test:${free}/` }, nobody);
  expect(result).toMatchObject({ isError: true, data: { refused: "unusable" } });
});
