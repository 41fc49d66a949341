import { QueryClient } from "@tanstack/react-query";
import { type AnswerOf, createClient } from "sallyport/client";
import { pageKey } from "./page-key.ts";

/** The console uses the public client. The browser adds the cookie of the sign-in, the page adds its key. */
export const client = createClient({ pageKey });

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The feed says when to read again; polling would only hide a broken feed.
      staleTime: Number.POSITIVE_INFINITY,
      refetchOnWindowFocus: false,
      // The client retries safe requests itself.
      retry: false,
      // A laptop without a network can still reach a server on itself.
      networkMode: "always",
    },
    mutations: { retry: false, networkMode: "always" },
  },
});

type ItemOf<List extends { readonly items: readonly unknown[] }> = List["items"][number];

export type Me = AnswerOf<"me.get">;
export type Interaction = AnswerOf<"interactions.get">;
export type Preview = NonNullable<AnswerOf<"interactions.shown">["preview"]>;
export type Decision = AnswerOf<"decisions.get">;
export type Operation = AnswerOf<"operations.get">;
export type Tool = AnswerOf<"tools.get">;
export type Entry = ItemOf<AnswerOf<"audit.entries">>;
export type RollbackReport = AnswerOf<"sessions.rollback">;
export type VerifyReport = AnswerOf<"audit.verify">;
export type SafetyClass = Tool["safetyClass"];
