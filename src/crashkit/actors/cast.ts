import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { stopwatch } from "../../util/clock.ts";
import { followLines, type LinesReader, startChild } from "../child.ts";
import type { RunEvidence } from "../evidence.ts";

import type { KitPlace } from "../open-kit.ts";
import {
  type ActorLine,
  type ActorOrder,
  type ActorPlan,
  type ActorRole,
  type Asked,
  callIdOf,
  type ServerPlace,
} from "./actor.ts";

interface CastOptions {
  readonly place: KitPlace;
  readonly server: ServerPlace;
  readonly folder: string;
  readonly cache: string;
  readonly seed: number;
  readonly roles: readonly ActorRole[];
  readonly cutPercent: number;
}

/** One role of the cast: when its process is killed, a new one takes over. */
export interface Member {
  readonly role: ActorRole;
  readonly name: string;
  isReady(): boolean;
  /** SIGKILL; the next process takes over. */
  kill(): Promise<void>;
  /** SIGSTOP or SIGCONT. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void;
  /** For good. */
  leave(): Promise<void>;
}

export type Histories = Required<Pick<RunEvidence, "told" | "keyed">>;

export interface Cast {
  readonly members: readonly Member[];
  open(tenant: string): void;
  drop(tenant: string): void;
  /** The requests of agents and the answers of all, from their own histories. */
  histories(tenant: string): Histories;
  /** How many answers came from the server. */
  served(): number;
  /** Recorded answers of the server, and requests that were repeated. */
  overHttp(): { readonly overHttp: number; readonly unanswered: number };
  /** Times from the start of a process until it is loaded. */
  readonly startMs: readonly number[];
  /** Processes that ended by themselves, with their output. */
  readonly fallen: readonly string[];
}

/** After so many failures the run is given up. */
export const MOST_FALLS = 20;

export function startCast(options: CastOptions): Cast {
  const { place, server, folder, cache, seed, roles, cutPercent } = options;
  let tenants: readonly string[] = [];
  const startMs: number[] = [];
  const fallen: string[] = [];
  const tellers: ((order: ActorOrder) => void)[] = [];
  const readers: LinesReader<ActorLine>[] = [];

  function join(role: ActorRole, number: number): Member {
    const name = `${role}-${number}`;
    const history = path.join(folder, `${name}.jsonl`);
    readers.push(followLines<ActorLine>(history));
    let lives = 0;
    let isGone = false;
    let next = load();
    let now = begin();

    /** The next process loads while this one works, so that a kill costs no time. */
    function load(): Loaded {
      lives += 1;
      const began = stopwatch.now();
      const own = { role, name, history, seed: `${seed}-${name}-${lives}` };
      const plan: ActorPlan = { ...own, place, server, cutPercent };
      const args = [JSON.stringify(plan)];
      const beside = import.meta.filename;
      const child = startChild({ beside, name: "actor-process", args, cache });
      const loaded: Loaded = { child, isReady: false };
      let errors = "";
      child.stderr?.on("data", (chunk) => (errors += chunk));
      // Orders to a killed process are lost; the next one starts with the current list.
      child.stdin?.on("error", () => {});
      child.stdout?.once("data", () => {
        loaded.isReady = true;
        startMs.push(stopwatch.now() - began);
      });
      child.once("exit", (code, signal) => {
        if (isGone || signal === "SIGKILL") return;
        fallen.push(`${name} ended with ${code ?? signal}: ${errors.trim().slice(-2_000)}`);
        if (fallen.length >= MOST_FALLS) return;
        if (loaded === now) now = begin();
        else next = load();
      });
      return loaded;
    }

    function begin(): Loaded {
      const begun = next;
      tell(begun, { begin: tenants });
      next = load();
      return begun;
    }

    tellers.push((order) => tell(now, order));
    return {
      role,
      name,
      isReady: () => now.isReady && !isGone,
      async kill() {
        await end(now);
        now = begin();
      },
      signal: (signal) => void now.child.kill(signal),
      async leave() {
        isGone = true;
        await Promise.all([end(now), end(next)]);
      },
    };
  }

  const lines = () => readers.flatMap((reader) => reader.read());
  const order = (one: ActorOrder) => {
    for (const tell of tellers) tell(one);
  };
  return {
    members: roles.map(join),
    startMs,
    fallen,
    open(tenant) {
      tenants = [...tenants, tenant];
      order({ open: tenant });
    },
    drop(tenant) {
      tenants = tenants.filter((other) => other !== tenant);
      order({ drop: tenant });
    },
    histories(tenant) {
      const own = lines().filter((line) => line.tenant === tenant);
      return {
        told: own.flatMap((line) => ("told" in line ? [line.told] : [])),
        keyed: own.flatMap((line) => ("asks" in line ? idsIn(line.asks) : [])),
      };
    },
    served: () => lines().filter((line) => "over" in line && line.over === "http").length,
    overHttp: () => ({
      overHttp: lines().filter((line) => "told" in line && line.over === "http").length,
      unanswered: lines().filter((line) => "unanswered" in line).length,
    }),
  };
}

function idsIn(asked: Asked): readonly string[] {
  return asked.calls.map((_, step) => callIdOf(asked, step));
}

interface Loaded {
  readonly child: ChildProcess;
  isReady: boolean;
}

function tell({ child }: Loaded, order: ActorOrder): void {
  child.stdin?.write(`${JSON.stringify(order)}\n`);
}

async function end({ child }: Loaded): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}
