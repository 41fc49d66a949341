import path from "node:path";

/** Where a system keeps what it must not lose; SQLite systems use the folder, the others the database. */
export interface Place {
  readonly dir: string;
  readonly url: string;
}

/** Every SQLite system has its data in the file of this name. */
export const fileIn = (dir: string): string => path.join(dir, "data.db");

export interface Refund {
  readonly invoice: string;
  readonly cents: number;
}

/** The one tool of the comparison. `preview` is what a reviewer is shown, where a system can show something. */
export interface Effect {
  readonly run: (refund: Refund) => Promise<string>;
  readonly preview: () => string;
}

export interface Opening extends Place {
  readonly effect: Effect;
  /** `answer`: this process only passes a person's answer on; the agent lives elsewhere. */
  readonly role: "all" | "answer";
  /** The checkout whose Sallyport it is. */
  readonly root: string;
}

/** How the tool behaves: count in memory; or leave a line in a file and then return, take its time, or never come back. */
export type ToolMode = "count" | "return" | "slow" | "hang";

/** What a process with one system is asked to do. */
export type Order =
  | {
      readonly do: "open";
      readonly system: string;
      readonly place: Place;
      readonly tool: ToolMode;
      readonly role: Opening["role"];
      readonly root: string;
    }
  /** Cycles by so many callers for so long. */
  | { readonly do: "cycles"; readonly callers: number; readonly ms: number }
  /** This many calls without an answer. */
  | { readonly do: "pend"; readonly count: number }
  | { readonly do: "propose" }
  | { readonly do: "look" | "approve" | "recover"; readonly id: string }
  | { readonly do: "close" };

export type Reply = { readonly ok: unknown } | { readonly error: string };

export interface Cycles {
  readonly rate: number;
  readonly cpuUs: number;
  readonly latenciesMs: readonly number[];
}

export interface Memory {
  readonly heap: number;
  readonly rss: number;
}

/** What a system reports to a reviewer or a later reader, in its own terms. */
export type Told =
  | "executed"
  | "accepted"
  | "already answered"
  | "back to review"
  | "unknown, a person is asked"
  | "nothing, still open";

/** One approval cycle as a system offers it: `propose` then `approve`. */
export interface Peer {
  /** An agent asks for one call of the tool. Resolves when it is durably pending. */
  propose(refund: Refund): Promise<string>;
  /** A person reads what they are asked, where that is a request of its own. */
  look?(id: string): Promise<void>;
  /** A person says yes. Resolves when the outcome is durable, or with what else became of it. */
  approve(id: string): Promise<Told>;
  /** What a host does after a crash, and the result that it gets. */
  recover(id: string): Promise<Told>;
  close(): Promise<void>;
}

export type OpenPeer = (opening: Opening) => Promise<Peer>;
