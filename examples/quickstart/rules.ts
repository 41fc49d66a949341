import { decodeJson, rulesValidator } from "sallyport/validators";
import { z } from "zod";

const Refund = z.strictObject({ invoice: z.string(), cents: z.int().positive() });

/** The technical review: is this a valid refund? */
export const tech = rulesValidator({
  name: "schema",
  policyVersion: "2026-11",
  rules: [
    {
      name: "is a refund",
      check(diff) {
        const { error } = Refund.safeParse(decodeJson(diff));
        return error && { severity: "block", reason: z.prettifyError(error) };
      },
    },
  ],
});

/** The business review: may this amount be paid without a person? */
export const business = rulesValidator({
  name: "limits",
  policyVersion: "2026-11",
  rules: [
    {
      name: "at most 500.00",
      check(diff) {
        const { cents } = Refund.parse(decodeJson(diff));
        if (cents <= 50_000) return undefined;
        return { severity: "block", reason: `${cents / 100} is more than 500.00` };
      },
    },
  ],
});
