import type { Migration } from "../../migration.ts";
import { spine } from "./0001-spine.ts";
import { operations } from "./0002-operations.ts";

/** `$schema` in the text stands for the schema the store lives in. */
export const MIGRATIONS: readonly Migration[] = [spine, operations];
