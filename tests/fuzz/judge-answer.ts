import { Agent, type IncomingHttpHeaders, request as nodeRequest } from "node:http";
import { ERRORS } from "../../src/model/errors.ts";
import type { HostileRequest } from "./hostile-requests.ts";

export interface Answer {
  /** 0 when the line was cut instead. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export function connections(count: number): Agent {
  return new Agent({ keepAlive: true, maxSockets: count });
}

/** Sends it with exactly these headers. A feed is let go as soon as it has begun. */
export function send(url: string, request: HostileRequest, agent: Agent): Promise<Answer> {
  const { method, path, headers, body } = request;
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const cut: Answer = { status: 0, headers: {}, text: "" };
    const sent = nodeRequest({ hostname, port, method, path, headers, agent }, (answer) => {
      const { statusCode: status = 0, headers: got } = answer;
      const chunks: Buffer[] = [];
      const done = () =>
        resolve({ status, headers: got, text: Buffer.concat(chunks).toString("utf8") });
      if (got["content-type"]?.startsWith("text/event-stream")) {
        done();
        sent.destroy();
        return;
      }
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", done);
      answer.on("error", done);
    });
    sent.on("error", () => resolve(cut));
    // A call that never gets an answer must be reported, not waited for.
    sent.setTimeout(PATIENCE_MS, () => sent.destroy(new Error("no answer")));
    sent.end(body);
  });
}

const PATIENCE_MS = 20_000;
const LIMIT = 1_048_576;
/** Said by the HTTP parser before there is a request: unreadable, too slow, wrong expectation, headers too long. */
const PARSER = [400, 408, 417, 431];
const LEAKS =
  /SQLITE_|syntax error at|node:internal|\.ts:\d+|UNIQUE constraint|ECONNREFUSED|\bat \w+ \(/;

/** What is wrong with an answer; undefined when it is one that this product may give. */
export function faultOf(
  request: HostileRequest,
  { status, headers, text }: Answer,
): string | undefined {
  const { method, body, path } = request;
  // Who sends far too much may find the line cut before it has read why.
  if (status === 0) return (body?.length ?? 0) > LIMIT ? undefined : "the line was cut";
  if (status >= 500 && status !== 503) return `status ${status}: ${text.slice(0, 300)}`;
  if (status < 400) return undefined;
  if (method === "HEAD") return undefined;
  if (LEAKS.test(text)) return `tells about its inside: ${text.slice(0, 300)}`;
  const type = headers["content-type"] ?? "";
  if (text === "" && PARSER.includes(status) && headers.connection === "close") return undefined;
  if (path.startsWith("/signin") && type.startsWith("text/html")) return undefined;
  if (type !== "application/problem+json") return `status ${status} as "${type}"`;
  const { code, status: said } = JSON.parse(text) as { code?: string; status?: number };
  if (code === undefined || !Object.hasOwn(ERRORS, code)) return `no known code: ${text}`;
  return said === status ? undefined : `says ${said}, is ${status}`;
}
