/** Beside this file, as source and as built. */
const ending = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
export const WATCHDOG = new URL(`./sqlite-watchdog${ending}`, import.meta.url);
export const SQLITE_PROCESS = new URL(`./sqlite-process${ending}`, import.meta.url);
