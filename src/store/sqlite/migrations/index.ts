import type { Migration } from "../../migration.ts";
import { spine } from "./0001-spine.ts";

export const MIGRATIONS: readonly Migration[] = [spine];
