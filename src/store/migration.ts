import { SallyportError } from "../model/errors.ts";

/** Numbered, forward only. A migration that was released is never edited; a new one follows it. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/** What has still to be run on a store that is at `current`. Throws store_incompatible for a store of a newer version. */
export function pendingMigrations(
  migrations: readonly Migration[],
  current: number,
): readonly Migration[] {
  const newest = migrations.at(-1)?.version ?? 0;
  if (current > newest) {
    const hint = "It was written by a newer version of Sallyport: upgrade this installation.";
    throw new SallyportError("store_incompatible", { schema: current, known: newest, hint });
  }
  return migrations.filter((migration) => migration.version > current);
}
