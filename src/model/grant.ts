/** Where in a run policies are asked. The behaviours call them checkpoints; here that word means a person's go. */
export const GATE_POINTS = [
  "pre-tool",
  "post-tool",
  "pre-write",
  "post-write",
  "pre-verify-command",
  "pre-delegation",
  "post-delegation",
  "pre-phase-transition",
] as const;
export type GatePoint = (typeof GATE_POINTS)[number];

/** A recorded permission to override a finding. */
export interface Grant {
  /** `AUTH001`. */
  readonly id: `AUTH${string}`;
  /** The finding it is about, by policy and message. */
  readonly finding: { readonly policy: string; readonly message: string };
  readonly grantor: "user" | "plan-revision" | "evidence-update";
  /** This finding anywhere, whatever its policy says at one point, or whatever it says in one phase. */
  readonly scope:
    | { readonly kind: "finding" }
    | { readonly kind: "point"; readonly point: GatePoint }
    | { readonly kind: "phase"; readonly phase: string };
  /** Epoch milliseconds from which on it is void; undefined lasts until it is revoked. */
  readonly expiresAt: number | undefined;
  readonly revoked?: boolean;
}

export const GRANTORS = ["user", "plan-revision", "evidence-update"] as const;

export const USER_GRANT_MS = 30 * 60 * 1000;

/** `AUTH001`, `AUTH002` …; from the thousandth on they grow longer. */
export function grantId(number: number): Grant["id"] {
  return `AUTH${String(number).padStart(3, "0")}`;
}
