import { z } from "zod";
import { SallyportError } from "../../model/errors.ts";
import { REVIEWERS, type Token } from "../../model/identity.ts";
import { foldName } from "../../model/names.ts";
import { type Call, jsonRoute, RULES } from "../route.ts";
import {
  invite,
  knownAdmins,
  knownPeople,
  knownPrograms,
  linkOfInvite,
  liveOf,
  makeSignInLink,
} from "../sign-in.ts";
import {
  DEFAULT_PAGE,
  instant,
  list,
  NO_INPUT,
  name,
  page,
  pageOf,
  paging,
  placeOf,
  reason,
} from "../wire/common.ts";
import { wireOf } from "../wire/record.ts";

const PERSON_ROLES = ["reviewer", "operator", "auditor", "admin"] as const;

const invitation = z.object({
  id: z.string(),
  subject: z.string(),
  roles: list(z.enum(PERSON_ROLES)),
  invitedBy: z.string(),
  /** False once it was confirmed or ended. */
  isOpen: z.boolean(),
  createdAt: instant,
  expiresAt: instant,
});

const lane = "people" as const;

export const peopleRoutes = {
  "people.invite": jsonRoute({
    summary:
      "Invite a person. With one admin the answer has the link; with several it has a code, and another admin confirms.",
    rule: RULES.administer,
    of: "none",
    input: z.strictObject({
      subject: name,
      roles: z.array(z.enum(PERSON_ROLES)).min(1).max(PERSON_ROLES.length),
    }),
    /** `code` and `link` are empty when the answer is repeated for its idempotency key. */
    answer: z.discriminatedUnion("state", [
      z.object({ state: z.literal("ready"), link: z.string() }),
      z.object({ state: z.literal("waits"), id: z.string(), code: z.string() }),
    ]),
    status: 201,
    lane,
    toKeep: (answer) =>
      answer.state === "ready" ? { ...answer, link: "" } : { ...answer, code: "" },
    async handle({ subject, roles }, call) {
      const { identity, services, store } = call;
      const { tenant, subject: actor } = identity;
      const admins = new Set(await knownAdmins(store)).add(foldName(actor));
      const isAlone = admins.size === 1;
      await checkInvitable(subject, isAlone, call);
      const person = { tenant, subject, roles, owner: "" };
      if (!isAlone) return { state: "waits" as const, ...(await invite(person, services, actor)) };
      const lifeMs = services.signIn.inviteMs;
      const link = await makeSignInLink(person, services, actor, lifeMs);
      return { state: "ready" as const, link };
    },
  }),
  "people.confirm": jsonRoute({
    summary:
      "Confirm another admin's invitation. The answer has the link; the person also needs the inviter's code.",
    rule: RULES.administer,
    of: "none",
    input: z.strictObject({ id: name }),
    /** `link` is empty when the answer is repeated for its idempotency key. */
    answer: z.object({ link: z.string(), ended: z.int() }),
    lane,
    toKeep: (answer) => ({ ...answer, link: "" }),
    async handle({ id }, call) {
      const { identity, services, store } = call;
      const { subject: actor } = identity;
      const invited = await store.tokens.invitation(id);
      if (invited !== undefined && foldName(invited.subject) === foldName(actor)) {
        const hint = "Another admin must confirm it: no one gives themselves a role.";
        throw new SallyportError("not_allowed", { id, by: actor, hint });
      }
      const before = invited === undefined ? [] : await liveOf(store, invited.subject);
      const link = await linkOfInvite(id, services, identity);
      const ended = await endAll(
        before.filter((token) => token.id !== id),
        call,
      );
      return { link, ended };
    },
  }),
  "people.list": jsonRoute({
    summary: "List invitations that wait or waited for a second admin, oldest first.",
    rule: RULES.readAccess,
    of: "none",
    input: z.strictObject(paging),
    answer: pageOf(invitation),
    lane,
    async handle({ cursor, limit = DEFAULT_PAGE }, { store }) {
      const after = placeOf(cursor);
      const found = await store.tokens.invitations({ after, limit: limit + 1 });
      const { items, next } = page(found, limit, ({ ord }) => ord);
      return { items: items.map(wireInvitation), next };
    },
  }),
};

/** One admin can invite only a new person. A known person is invited again by two, and signed out first. */
async function checkInvitable(subject: string, isAlone: boolean, call: Call): Promise<void> {
  const folded = foldName(subject);
  if (folded === "" || (await knownPrograms(call.store)).has(folded)) {
    const hint = "This is the name of a program; choose another name for the person.";
    throw new SallyportError("not_allowed", { what: "subject", hint });
  }
  if (folded === foldName(call.identity.subject)) {
    const hint = "Make a link for yourself with me.link; another admin changes your roles.";
    throw new SallyportError("not_allowed", { what: "subject", hint });
  }
  if (!isAlone || !(await knownPeople(call)).has(folded)) return;
  const hint =
    "This person is already known. They can make a new link with me.link, sign in with the identity provider, or get a link from the server's operator.";
  throw new SallyportError("not_allowed", { what: "subject", hint });
}

/** Revokes all sessions and links of this person. */
async function endAll(tokens: readonly Token[], { store, identity, services }: Call) {
  let count = 0;
  for (const { id } of tokens) {
    const isEnded = await store.tokens.end(id, "invited again", { actor: identity.subject });
    if (isEnded) count += 1;
  }
  services.authenticator.forget();
  return count;
}

function wireInvitation({ id, subject, roles, madeBy, isLive, createdAt, expiresAt }: Token) {
  const own = PERSON_ROLES.filter((role) => roles.includes(role));
  return { id, subject, roles: own, invitedBy: madeBy, isOpen: isLive, createdAt, expiresAt };
}

const reviewer = wireOf(REVIEWERS, [
  "id",
  "status",
  "approved",
  "rejected",
  "caught",
  "missed",
  "hourCount",
  "hourAt",
]);
const reviewersLane = "people" as const;

export const reviewerRoutes = {
  "reviewers.list": jsonRoute({
    summary: "Show how each reviewer decides: approvals, rejections, decoys caught and missed.",
    rule: RULES.checkAudit,
    of: "none",
    input: NO_INPUT,
    answer: z.object({ items: list(reviewer) }),
    lane: reviewersLane,
    handle: async (_, { gate }) => ({ items: await gate.reviewers.list() }),
  }),
  "reviewers.restore": jsonRoute({
    summary: "Count a reviewer's approvals again after they missed decoys. Not your own.",
    rule: RULES.restoreReviewer,
    of: "none",
    input: z.strictObject({ id: name, reason }),
    answer: reviewer,
    lane: reviewersLane,
    handle: ({ id, reason: why }, { gate, identity }) =>
      gate.reviewers.restore(id, { by: identity.subject, reason: why }),
  }),
};
