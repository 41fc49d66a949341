import type { Bug } from "./bug.ts";

/** Mistakes about files and folders: the judged place, working folders, previews. */
export const FILES_BUGS: readonly Bug[] = [];
