import type { Timers } from "../../util/timers.ts";
import { CommitListeners } from "../engine.ts";
import type { Lines, PgClient } from "./connection.ts";

export interface NoticesOptions {
  readonly lines: Lines;
  readonly channel: string;
  readonly timers: Timers;
  readonly patienceMs: number;
  /** A standby does not let anybody listen; who only reads polls. */
  readonly isDeaf: boolean;
}

/** NOTIFY inside a transaction makes commits take turns (7,100 to 3,000 per second measured), so it is sent afterwards. */
const NOTIFY_EVERY_MS = 25;
const RETRY_MS = 1_000;

/** A hint need not be on disk: waiting for that would keep the disk from the next group. */
const HINT = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '')";

/** Wake-ups between processes. Best effort: nothing may depend on one arriving. */
export class Notices {
  readonly #options: NoticesOptions;
  readonly #listeners = new CommitListeners();
  #listening: PgClient | undefined;
  #wanted = false;
  #connecting: Promise<void> | undefined;
  #sending = false;
  /** Something was committed since the hint that is on its way was asked for. */
  #missed = false;
  #closed = false;

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  add(listener: () => void): () => void {
    this.#wanted = true;
    this.#listen();
    return this.#listeners.add(listener);
  }

  /** Tells this process at once and the others soon, however many commits come in between. */
  send(): void {
    this.#listeners.tell();
    this.#missed = this.#sending;
    if (this.#sending || this.#closed) return;
    this.#sending = true;
    const { lines, channel, timers, patienceMs } = this.#options;
    timers.after(NOTIFY_EVERY_MS, () => {
      if (this.#closed) return;
      // One at a time: on a silent network they would use up the pool.
      const hint = lines.query({ text: HINT, values: [channel] }, patienceMs).catch(() => {
        // A lost hint: whoever waits polls as well.
      });
      void hint.then(() => {
        this.#sending = false;
        if (this.#missed) this.send();
      });
    });
  }

  #listen(): void {
    if (this.#options.isDeaf) return;
    if (this.#closed || !this.#wanted || this.#listening || this.#connecting) return;
    this.#connecting = this.#connect().finally(() => {
      this.#connecting = undefined;
    });
  }

  async #connect(): Promise<void> {
    const { lines, patienceMs } = this.#options;
    try {
      const client = await lines.connect(patienceMs);
      const lost = (): void => {
        if (this.#listening !== client) return;
        this.#listening = undefined;
        lines.drop(client);
        this.#options.timers.after(RETRY_MS, () => this.#listen());
      };
      client.on("error", lost);
      client.on("notification", () => this.#listeners.tell());
      this.#listening = client;
      const text = `LISTEN ${this.#options.channel}`;
      await lines.within(client, patienceMs, () => client.query({ text }));
    } catch {
      // No hints for now; polling goes on and so does trying.
      this.#hangUp();
      this.#options.timers.after(RETRY_MS, () => this.#listen());
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#connecting;
    this.#hangUp();
  }

  #hangUp(): void {
    const client = this.#listening;
    this.#listening = undefined;
    if (client !== undefined) this.#options.lines.drop(client);
  }
}
