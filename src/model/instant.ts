/** A moment as ISO 8601 text in UTC with milliseconds: sortable in every store and stable when hashed. */
export type Instant = string;
