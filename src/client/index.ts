export type { AnswerOf, CallName, InputOf } from "../http/routes.ts";
export { isSallyportError, SallyportError } from "../model/errors.ts";
export { forPeople } from "../model/for-people.ts";
export { headOf, type Piece, piecesOf } from "../util/visible-text.ts";
export type { SendOptions } from "./create-client.ts";
export {
  type Calls,
  type Client,
  type ClientOptions,
  createClient,
  type Page,
  type Session,
  type SignedIn,
  type SignInOptions,
  signIn,
} from "./create-client.ts";
export type { EventsOptions, FeedEvent } from "./events.ts";
