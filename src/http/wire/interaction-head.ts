import type { z } from "zod";
import type { Interaction } from "../../model/interaction.ts";
import { encodeValue } from "../../util/value-codec.ts";
import type { interaction } from "./interaction.ts";

type Wire = z.output<typeof interaction>;
type Cut = NonNullable<Wire["cut"]>[number];

/** Longer texts are cut in lists. */
const MOST_TEXT = 4_096;
/** Longer metadata, remarks and answers are left out of lists. */
const MOST_JSON = 16 * 1024;

/**
 * A question as lists show it: `cut` names what is not whole, with its size. Everything that says whether and by whom it may
 * be decided is there; whoever decides reads the whole with `interactions.get`.
 */
export function headOf(whole: Interaction): Wire {
  const cut: Cut[] = [];
  const text = (field: string, value: string) => {
    if (value.length <= MOST_TEXT) return value;
    cut.push({ field, bytes: Buffer.byteLength(value) });
    return value.slice(0, MOST_TEXT).toWellFormed();
  };
  const fits = (field: string, value: unknown) => {
    const bytes = Buffer.byteLength(encodeValue(value as never));
    if (bytes > MOST_JSON) cut.push({ field, bytes });
    return bytes <= MOST_JSON;
  };
  const { pendingTool, metadata, remarks, answer, ...rest } = whole;
  const head = {
    ...rest,
    displayText: text("displayText", whole.displayText),
    ...(pendingTool === undefined
      ? {}
      : {
          pendingTool: {
            tool_name: pendingTool.tool_name,
            args_json: text("pendingTool.args_json", pendingTool.args_json),
            summary: text("pendingTool.summary", pendingTool.summary),
          },
        }),
    metadata: fits("metadata", metadata) ? metadata : {},
    remarks: fits("remarks", remarks) ? remarks : [],
    ...(answer === undefined || !fits("answer", answer) ? {} : { answer }),
  };
  return cut.length === 0 ? head : { ...head, cut };
}

/** Roughly how large the whole is; what is short in every question is not counted. */
export function weightOf({ pendingTool, metadata, answer, remarks }: Interaction): number {
  const texts = (pendingTool?.args_json.length ?? 0) + (pendingTool?.summary.length ?? 0);
  return texts + encodeValue([metadata, answer ?? null, remarks] as never).length;
}
