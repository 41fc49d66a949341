import { SallyportError } from "../model/errors.ts";
import type { Interaction, Requirement } from "../model/interaction.ts";
import { foldName, isName } from "../model/names.ts";

/** Somebody who may decide. */
export interface Person {
  readonly id: string;
  readonly groups?: readonly string[];
  /** Agents and automations that act for this person: what those ask for, this person has asked for. */
  readonly agents?: readonly string[];
}

/**
 * Whether this person may decide a question, as a sentence about why not. Nobody decides what they asked for themselves:
 * not the agent, nor who delegated to it, nor whose behalf it acts on, nor whose automation it is. With a list of people,
 * a person who is not on it may not decide at all.
 */
export function whyNot(
  by: string,
  question: Pick<Interaction, "chain" | "assignedTo">,
  people?: readonly Person[],
): string | undefined {
  if (!isName(by) || foldName(by) === "")
    return "Say who decides: a short text without control characters.";
  const person = people?.find(({ id }) => id === by);
  if (people !== undefined && person === undefined) {
    return `${by} is not among the people who may decide. Ask one of them, or have ${by} added.`;
  }
  // Nobody gets past themselves by another spelling: providers of identities do not all write names alike.
  const own = new Set(sameHand(by, people).map(foldName));
  if (question.chain.some((asker) => own.has(foldName(asker)))) {
    return "Somebody else has to decide: nobody approves what they asked for themselves.";
  }
  const { assignedTo } = question;
  if (assignedTo === "" || assignedTo === by || person?.groups?.includes(assignedTo) === true) {
    return undefined;
  }
  return `It was handed to ${assignedTo}. Let them decide, or have it handed to you.`;
}

/** Everybody who is the same hand: a person with their automations, whichever of them speaks, also where one is on the list itself. */
export function sameHand(by: string, people: readonly Person[] = []): readonly string[] {
  const name = foldName(by);
  const hands = people.filter(({ id, agents = [] }) =>
    [id, ...agents].map(foldName).includes(name),
  );
  return [by, ...hands.flatMap(({ id, agents = [] }) => [id, ...agents])];
}

/** Whether this person has already said yes under another name. */
export function hasVoted(
  by: string,
  { votes }: Pick<Interaction, "votes">,
  people?: readonly Person[],
): boolean {
  const own = new Set(sameHand(by, people).map(foldName));
  own.delete(foldName(by));
  return votes.some((vote) => own.has(foldName(vote.by)));
}

/** Whether enough people are left who did not ask for it, as far as names are known. Anybody may be left where none are. */
export function canBeMet(
  requires: Requirement,
  askers: readonly string[],
  people?: readonly Person[],
): boolean {
  const own = new Set(askers.flatMap((name) => sameHand(name, people)).map(foldName));
  const isFree = (name: string) => !own.has(foldName(name));
  const known = people?.map(({ id }) => id);
  return requires.every(({ from = known, count }) => {
    const named = from?.filter((name) => isFree(name) && (known?.includes(name) ?? true));
    return named === undefined || named.length >= count;
  });
}

/** Throws not_allowed. */
export function checkMayDecide(
  by: string,
  question: Interaction,
  people?: readonly Person[],
): void {
  const hint = whyNot(by, question, people);
  if (hint !== undefined) throw new SallyportError("not_allowed", { id: question.id, by, hint });
}
