import { SallyportError } from "../../model/errors.ts";
import { takeGroup, type Waiting } from "../group-commit.ts";
import { asStoreError } from "./connection.ts";
import { GroupWriter, type GroupWriterOptions } from "./group-writer.ts";
import { lockMsOf } from "./session.ts";

const MAX_GROUP = 256;
const MAX_GROUP_BYTES = 4_000_000;
const MAX_WAITING = 10_000;

/**
 * Where tenants wait whose rows somebody holds, so that they hold up only each other. A tenant that came here is written
 * here, in the order in which its changes were asked for, until it has been written once; then it goes back to the others.
 * It has a connection of its own for as long as somebody waits.
 */
export class SlowLane {
  readonly #options: Omit<GroupWriterOptions, "onHeld">;
  readonly #writer: GroupWriter;
  readonly #queues = new Map<string, readonly Waiting[]>();
  /** What the attempt under way could not write. */
  #held: readonly Waiting[] = [];
  #error: unknown;
  #running: Promise<void> | undefined;

  constructor(options: Omit<GroupWriterOptions, "onHeld">) {
    this.#options = options;
    this.#writer = new GroupWriter({
      ...options,
      onHeld: (members, error) => {
        this.#held = [...this.#held, ...members];
        this.#error = error;
      },
    });
  }

  has(tenant: string): boolean {
    return this.#queues.has(tenant);
  }

  /** All of one tenant. Always true: they are settled here. */
  add(members: readonly Waiting[]): true {
    const tenant = members[0]?.tenant ?? "";
    const queue = this.#queues.get(tenant) ?? [];
    const room = Math.max(MAX_WAITING - queue.length, 0);
    this.#queues.set(tenant, [...queue, ...members.slice(0, room)]);
    for (const one of members.slice(room)) {
      const hint = "Somebody holds a row of this tenant, and too many wait for it already.";
      one.reject(new SallyportError("store_busy", { waiting: queue.length, hint }));
    }
    this.#running ??= this.#run();
    return true;
  }

  /** Waits for those who wait here; each of them is answered in its time. */
  async close(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let waiting = this.#waiting(); waiting.length > 0; waiting = this.#waiting()) {
      for (const tenant of waiting) await this.#turnOf(tenant);
    }
    this.#options.session.close();
    this.#running = undefined;
  }

  #waiting(): string[] {
    return [...this.#queues].filter(([, queue]) => queue.length > 0).map(([tenant]) => tenant);
  }

  async #turnOf(tenant: string): Promise<void> {
    const { group, rest } = takeGroup(this.#queues.get(tenant) ?? [], MAX_GROUP, MAX_GROUP_BYTES);
    this.#queues.set(tenant, rest);
    this.#held = [];
    await this.#writer.write(group);
    const queue = [...this.#held, ...(this.#queues.get(tenant) ?? [])];
    if (this.#held.length === 0) {
      if (queue.length === 0) this.#queues.delete(tenant);
      return;
    }
    // Who could not wait for the row once more is told now.
    const { patienceMs, timers } = this.#options;
    const soon = timers.elapsedMs() + lockMsOf(patienceMs);
    const isLate = ({ since }: Waiting) => since + patienceMs <= soon;
    for (const one of queue.filter(isLate)) one.reject(asStoreError(this.#error));
    this.#queues.set(
      tenant,
      queue.filter((one) => !isLate(one)),
    );
  }
}
