import { SallyportError } from "../model/errors.ts";
import { isRole, TOKEN_KINDS } from "../model/identity.ts";
import { encodeValue } from "../util/value-codec.ts";
import { NOW, type Row, type Table, type Values } from "./engine.ts";
import { decoded, instantIn } from "./read-cell.ts";
import type { NewToken, Token } from "./tokens.ts";

/** How a token lies in a row: only the SHA-256 of its secret, so that whoever reads the database cannot sign in. */
export const TOKENS: Table = {
  name: "tokens",
  columns: {
    kind: "text",
    hash: "text",
    subject: "text",
    roles: "text",
    owner: "text",
    note: "text",
    state: "text",
    made_by: "text",
    expires_at: "int",
    created_at: "int",
    updated_at: "int",
  },
  indexed: ["hash", "kind"],
};

export function rowOfToken(token: NewToken, by: string): Values {
  return {
    kind: token.kind,
    hash: token.hash,
    subject: token.subject,
    roles: token.roles.join(" "),
    owner: token.owner,
    note: encodeValue(token.note),
    state: "live",
    made_by: by,
    expires_at: { nowPlusMs: token.lifeMs },
    created_at: NOW,
    updated_at: NOW,
  };
}

export function tokenOf(tenant: string, row: Row): Token {
  const kind = TOKEN_KINDS.find((known) => known === row["kind"]);
  const roles = String(row["roles"]).split(" ");
  if (kind === undefined || !roles.every(isRole)) {
    const hint = "Run a store check and compare with the audit trail before you trust this store.";
    throw new SallyportError("damaged_record", { id: String(row["id"]), column: "roles", hint });
  }
  return {
    id: String(row["id"]),
    kind,
    tenant,
    subject: String(row["subject"]),
    roles,
    owner: String(row["owner"]),
    note: String(decoded(row, "note")),
    isLive: row["state"] === "live",
    madeBy: String(row["made_by"]),
    createdAt: instantIn(row, "created_at"),
    expiresAt: instantIn(row, "expires_at"),
    ord: Number(row["ord"]),
  };
}
