export type { AnswerOf, CallName, InputOf } from "../http/routes.ts";
export { forPeople, isSallyportError, SallyportError } from "../model/errors.ts";
export { headOf, type Piece, piecesOf } from "../util/visible-text.ts";
export type { SendOptions } from "./create-client.ts";
export {
  type CallProgress,
  type Calls,
  type Client,
  type ClientOptions,
  createClient,
  type EventsOptions,
  type FeedEvent,
  type Page,
  type PersonSession,
  type SignedIn,
  type SignInOptions,
  signIn,
} from "./create-client.ts";
