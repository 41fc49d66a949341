import { createHmac } from "node:crypto";
import { SallyportError } from "../model/errors.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { checkedUrl, checkReceived, type NotifyChannel } from "./channel.ts";

export interface WebhookOptions {
  readonly url: string;
  /** `whsec_` and the key in base64, at least 24 bytes, as Standard Webhooks has it. */
  readonly secret: string;
  readonly clock?: Clock;
}

/** Signed as Standard Webhooks: any library for it verifies the message. Throws invalid_input. */
export function webhook({ url, secret, clock = systemClock }: WebhookOptions): NotifyChannel {
  const address = checkedUrl("notify webhook url", url);
  const key = keyIn(secret);
  return {
    kind: "webhook",
    async send({ id, kind, tenant, items }, signal) {
      const body = JSON.stringify({ type: `sallyport.${kind}`, tenant, items });
      const at = Math.floor(clock.now() / 1_000);
      const signed = createHmac("sha256", key).update(`${id}.${at}.${body}`).digest("base64");
      const headers = {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": String(at),
        "webhook-signature": `v1,${signed}`,
      };
      // A redirect could lead the message to another receiver.
      const terms = { method: "POST", headers, body, signal, redirect: "error" } as const;
      const answer = await fetch(address, terms);
      await answer.body?.cancel();
      checkReceived(answer.status);
      return undefined;
    },
  };
}

function keyIn(secret: string): Buffer {
  const text = /^whsec_([A-Za-z0-9+/]+=*)$/.exec(secret)?.[1] ?? "";
  const key = Buffer.from(text, "base64");
  if (key.length >= 24) return key;
  const hint = "The secret is whsec_ and at least 24 random bytes in base64.";
  throw new SallyportError("invalid_input", { what: "notify webhook secret", hint });
}
