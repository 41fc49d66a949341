import path from "node:path";
import type { StorePlace } from "./state-folder.ts";

interface PlaceFlags {
  readonly data: string;
  readonly database?: string;
  readonly state?: string;
  readonly epochFile?: string;
}

export const STATE =
  "where anchors, their key and the epoch file are kept, outside --data (or SALLYPORT_STATE); by default in your state folder";

/** The store that the flags of a command name. */
export function placeOf({ data, database, state, epochFile }: PlaceFlags): StorePlace {
  return {
    data: path.resolve(data),
    ...(database === undefined ? {} : { database }),
    ...(state === undefined ? {} : { state }),
    ...(epochFile === undefined ? {} : { epochFile }),
  };
}
