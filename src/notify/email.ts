import { SallyportError } from "../model/errors.ts";
import { lineOf, type NotifyChannel } from "./channel.ts";

/** The part of a nodemailer transport that is used: `nodemailer.createTransport(…)`. Shape: callback. */
export interface MailTransport {
  sendMail(mail: Mail): Promise<unknown>;
}

export interface Mail {
  readonly from: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly messageId: string;
  readonly headers: Record<string, string>;
}

export interface EmailOptions {
  readonly transport: MailTransport;
  readonly from: string;
  readonly to: readonly string[];
}

/** A mail with a link. It never approves by itself: scanners open links, and mail can be forwarded. */
export function email({ transport, from, to }: EmailOptions): NotifyChannel {
  const addresses = [from, ...to];
  if (to.length === 0 || addresses.some((one) => !/^[^\s@,;<>]+@[^\s@,;<>]+$/.test(one))) {
    const hint = "Give one sender and at least one receiver, each as a plain address.";
    throw new SallyportError("invalid_input", { what: "notify email", hint });
  }
  return {
    kind: "email",
    async send({ id, kind, items }) {
      const [first] = items;
      if (first === undefined) return undefined;
      const subject = items.length === 1 ? lineOf(kind, first) : `${items.length} questions wait`;
      const text = items.map((item) => `${lineOf(kind, item)}\n${item.url}`).join("\n\n");
      await transport.sendMail({
        from,
        to: to.join(", "),
        subject: `[Sallyport] ${subject}`,
        text: `${text}\n`,
        // The same for every attempt, so that mail programs show one message.
        messageId: `<${id}@${from.split("@")[1]}>`,
        headers: { "X-Sallyport-Notice": id, "Auto-Submitted": "auto-generated" },
      });
      return undefined;
    },
  };
}
