import { z } from "zod";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import { NOTICE_STATES, NOTICES } from "../../model/notice.ts";
import type { SlackChannel } from "../../notify/index.ts";
import type { TenantStore } from "../../store/store.ts";
import { checkAccess, readRaw } from "../answer.ts";
import { access, jsonRoute, openRoute } from "../route.ts";
import { liveOf } from "../sign-in.ts";
import { name, pageByOrd, pageOf, paging, wireOf } from "../wire.ts";

const notice = wireOf(
  NOTICES,
  // biome-ignore format: a list
  ["id", "channel", "kind", "interactionId", "state", "attempts", "problem", "createdAt"],
);

export const noticeRoutes = {
  "notices.list": jsonRoute({
    summary: "List notifications, those that failed for good unless another state is named.",
    ...access("checkAudit", "none", "people"),
    input: z.strictObject({ state: z.enum(NOTICE_STATES).optional(), ...paging }),
    answer: pageOf(notice),
    handle: ({ state = "dead", ...paged }, { store }) =>
      pageByOrd(
        paged,
        (query) => store.notices.list({ state, ...query }),
        (one) => one,
      ),
  }),
  "notices.retry": jsonRoute({
    summary: "Send a notification that failed for good again.",
    ...access("manageWork", "none", "people"),
    input: z.strictObject({ id: name }),
    answer: notice,
    handle: ({ id }, { store, by }) => store.notices.retry(id, { actor: by }),
  }),
  "notify.slack": openRoute({
    summary: "Receive what Slack sends when a button of a notification was pressed.",
    rule: {
      anyone:
        "Slack signs the bytes of its requests, and only people who are mapped and signed in decide",
    },
    input: z.strictObject({ channel: name }),
    contentType: "application/json",
    async handle({ channel }, context, services) {
      const { incoming } = context.env;
      const { notify, gates, limits, timers, store } = services;
      const found =
        notify && Object.hasOwn(notify.channels, channel) ? notify.channels[channel] : undefined;
      if (found === undefined || !("pressed" in found)) {
        throw new SallyportError("not_found", {
          id: channel,
          hint: "There is no such Slack channel.",
        });
      }
      const header = (key: string) => String(incoming.headers[key] ?? "");
      const body = await readRaw(incoming, limits, timers);
      const gate = gates[notify?.tenant ?? ""];
      if (gate === undefined) throw new SallyportError("not_found", { id: channel });
      const pressed = {
        body,
        timestamp: header("x-slack-request-timestamp"),
        signature: header("x-slack-signature"),
      };
      const tenant = store.tenant(notify?.tenant ?? "");
      const text = await (found as SlackChannel).pressed(pressed, {
        inbox: gate.interactions,
        signedIn: (person) => reviewerOf(tenant, person),
      });
      context.header("Cache-Control", "no-store");
      return context.json({ response_type: "ephemeral", replace_original: false, text });
    },
  }),
};

/** The person as one of their live sessions names them, if that session could approve over HTTP now. */
async function reviewerOf(store: TenantStore, person: string): Promise<string | undefined> {
  for (const token of await liveOf(store, person)) {
    try {
      checkAccess("interactions.approve", access("decide", "interaction", "people").rule, token);
      return token.subject;
    } catch (error) {
      if (!isSallyportError(error, "not_allowed")) throw error;
    }
  }
  return undefined;
}
