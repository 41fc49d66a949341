import { SallyportError } from "../model/errors.ts";
import { GRANTORS, type Grant } from "../model/grant.ts";
import { encoded } from "./decision-rows.ts";
import { NOW, type Row, type Table, type Values } from "./engine.ts";
import type { NewGrant, RecordedGrant } from "./grants.ts";
import { decoded } from "./read-cell.ts";

/** How a grant lies in a row. */
export const GRANTS: Table = {
  name: "grants",
  columns: {
    session_id: "text",
    state: "text",
    grantor: "text",
    finding: "text",
    scope: "text",
    given_by: "text",
    reason: "text",
    expires_at: "int",
    created_at: "int",
    updated_at: "int",
  },
  indexed: ["session_id"],
};

export function rowOfGrant(grant: NewGrant, lastsMs: number | undefined): Values {
  return {
    session_id: grant.sessionId,
    state: "live",
    grantor: grant.grantor,
    finding: encoded("finding", { policy: grant.finding.policy, message: grant.finding.message }),
    scope: encoded("scope", { ...grant.scope }),
    given_by: grant.by,
    reason: encoded("reason", grant.reason),
    expires_at: lastsMs === undefined ? null : { nowPlusMs: lastsMs },
    created_at: NOW,
    updated_at: NOW,
  };
}

export function grantOf(row: Row): RecordedGrant {
  const grantor = GRANTORS.find((name) => name === row["grantor"]);
  const { state, expires_at: expiresAt } = row;
  if (grantor === undefined || (state !== "live" && state !== "revoked")) {
    const hint = "Run a store check and compare with the audit trail before you trust this store.";
    throw new SallyportError("damaged_record", { id: String(row["id"]), hint });
  }
  return {
    id: String(row["id"]) as Grant["id"],
    sessionId: String(row["session_id"]),
    finding: decoded<Grant["finding"]>(row, "finding"),
    grantor,
    scope: decoded<Grant["scope"]>(row, "scope"),
    expiresAt: typeof expiresAt === "number" ? expiresAt : undefined,
    revoked: state === "revoked",
    by: String(row["given_by"]),
    reason: String(decoded(row, "reason")),
    ord: Number(row["ord"]),
  };
}
