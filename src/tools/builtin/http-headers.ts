import type { JsonObject } from "../../util/json.ts";
import { Refusal } from "./refusal.ts";

export const HEADERS_INPUT = {
  type: "object",
  additionalProperties: { type: "string", maxLength: 8192 },
  maxProperties: 50,
  description:
    "Header fields, for instance accept. Passwords and tokens are the operator's to add.",
} as const satisfies JsonObject;

/** They decide where a request ends or goes, which is ours to say. */
const OURS =
  /^(?:host|connection|content-length|transfer-encoding|upgrade|te|trailer|keep-alive|expect|via|forwarded|accept-encoding|idempotency-key|(?:proxy|sec|x-forwarded)-.*)$/;
/** What an input holds is stored and shown. */
const SECRET = /^(?:authorization|cookie|x-api-key|api-key|x-auth-token|.*-(?:secret|token))$/;

/** The agent's header fields in lower case. Throws a Refusal for those that are not its to set. */
export function readHeaders(given: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": "sallyport" };
  for (const [name, value] of Object.entries(given)) {
    const lower = name.toLowerCase();
    const why = problemOf(lower, value);
    if (why !== undefined) {
      const shown = JSON.stringify(name.slice(0, 80));
      throw new Refusal(
        "not_allowed",
        `The header ${shown} is refused: ${why}. Nothing was sent. Leave it out.`,
      );
    }
    headers[lower] = value;
  }
  return headers;
}

function problemOf(name: string, value: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) return "it is not a name that a header can have";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are the ones looked for.
  if (/[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/.test(value)) return "its value cannot be sent";
  if (OURS.test(name)) return "it decides where the request goes or ends";
  if (SECRET.test(name)) return "secrets in an input would be stored; the operator sets them";
  return undefined;
}
