/** How long people have to find out about a lost call before they are asked again; nobody's silence settles what happened. */
export const LOST_MS = 30 * 24 * 3_600_000;
