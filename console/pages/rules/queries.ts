import { queryOptions } from "@tanstack/react-query";
import type { AnswerOf } from "sallyport/client";
import { client } from "../../app/client.ts";
import { all } from "../../app/queries.ts";

export type Rule = AnswerOf<"standingRules.list">["items"][number];
export type Grant = AnswerOf<"grants.list">["items"][number];

export const rulesQuery = queryOptions({
  queryKey: ["rules"],
  queryFn: ({ signal }) =>
    all((cursor) => client.standingRules.list({ limit: 500, ...cursor }, { signal })),
});

export const grantsQuery = queryOptions({
  queryKey: ["grants"],
  queryFn: ({ signal }) =>
    all((cursor) => client.grants.list({ limit: 500, ...cursor }, { signal })),
});
