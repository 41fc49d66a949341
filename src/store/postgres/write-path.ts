import type { Timers } from "../../util/timers.ts";
import type { Change, ChangeResult } from "../engine.ts";
import { GroupCommit, type Waiting } from "../group-commit.ts";
import type { Lines } from "./connection.ts";
import { GroupWriter } from "./group-writer.ts";
import type { LostTail } from "./lost-tail.ts";
import { type SessionOptions, WriteSession } from "./session.ts";
import { SlowLane } from "./slow-lane.ts";

export interface WritePathOptions {
  readonly lines: Lines;
  readonly schema: string;
  /** Sends a group as one transaction; everything that can go wrong with that is dealt with here. */
  readonly writer: SessionOptions["writer"];
  readonly tail: LostTail;
  readonly timers: Timers;
  readonly patienceMs: number;
  readonly onCommit: () => void;
}

export interface WritePath {
  commit(tenant: string, change: Change): Promise<ChangeResult>;
  /** Waits for what was asked for. */
  drain(): Promise<void>;
  close(): void;
}

/** From a change that was asked for to its answer: grouped, written, tried again and looked up when an answer was lost. */
export function writePath(options: WritePathOptions): WritePath {
  const { tail, timers } = options;
  const slow = new SlowLane({ ...options, session: new WriteSession(options) });
  const session = new WriteSession(options);
  const onHeld = (members: readonly Waiting[]) => slow.add(members);
  const divert = (one: Waiting) => slow.has(one.tenant) && slow.add([one]);
  const main = new GroupWriter({ ...options, session, divert, onHeld });
  const group = new GroupCommit({ write: (members) => main.write(members), timers });
  return {
    commit(tenant, change) {
      if (tail.of(tenant) === undefined) return group.submit(tenant, change);
      return tail.lookAgain(tenant).then(() => group.submit(tenant, change));
    },
    async drain() {
      await group.close();
      await slow.close();
    },
    close: () => session.close(),
  };
}
