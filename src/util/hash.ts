import { createHmac, hash } from "node:crypto";

/** SHA-256 of bytes, or of a text as UTF-8, in lower-case hexadecimal. Throws TypeError for lone surrogates. */
export function sha256Hex(data: string | Uint8Array): string {
  refuseLoneSurrogates(data);
  return hash("sha256", data, "hex");
}

/** HMAC-SHA-256 in lower-case hexadecimal; a text, as key or data, is encoded as UTF-8. Throws like `sha256Hex`. */
export function hmacSha256Hex(key: string | Uint8Array, data: string | Uint8Array): string {
  refuseLoneSurrogates(key);
  refuseLoneSurrogates(data);
  return createHmac("sha256", key).update(data).digest("hex");
}

/** UTF-8 cannot encode a lone surrogate: all 2,048 become the same replacement character and would hash alike. */
function refuseLoneSurrogates(data: string | Uint8Array): void {
  if (typeof data === "string" && !data.isWellFormed()) {
    throw new TypeError(
      "Cannot hash a text that holds half of a surrogate pair; use whole characters.",
    );
  }
}
