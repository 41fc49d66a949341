import type { Timers } from "../../util/timers.ts";
import { CommitListeners } from "../commit-listeners.ts";
import type { PgClient, PgPool } from "./connection.ts";

export interface NoticesOptions {
  readonly pool: PgPool;
  readonly channel: string;
  readonly timers: Timers;
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
    if (this.#sending || this.#closed) return;
    this.#sending = true;
    this.#options.timers.after(NOTIFY_EVERY_MS, () => {
      this.#sending = false;
      if (this.#closed) return;
      const { pool, channel } = this.#options;
      pool.query({ text: HINT, values: [channel] }).catch(() => {
        // A lost hint: whoever waits polls as well.
      });
    });
  }

  #listen(): void {
    if (this.#closed || !this.#wanted || this.#listening || this.#connecting) return;
    this.#connecting = this.#connect().finally(() => {
      this.#connecting = undefined;
    });
  }

  async #connect(): Promise<void> {
    try {
      const client = await this.#options.pool.connect();
      const lost = (): void => {
        if (this.#listening !== client) return;
        this.#listening = undefined;
        client.release(true);
        this.#options.timers.after(RETRY_MS, () => this.#listen());
      };
      client.on("error", lost);
      client.on("notification", () => this.#listeners.tell());
      this.#listening = client;
      await client.query({ text: `LISTEN ${this.#options.channel}` });
    } catch {
      // No hints for now; polling goes on and so does trying.
      this.#listening?.release(true);
      this.#listening = undefined;
      this.#options.timers.after(RETRY_MS, () => this.#listen());
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#connecting;
    this.#listening?.release(true);
    this.#listening = undefined;
  }
}
