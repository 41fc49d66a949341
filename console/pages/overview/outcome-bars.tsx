import type { AnswerOf } from "sallyport/client";
import { momentText, numberText } from "../../app/locale.ts";
import { OUTCOMES } from "../decisions/call-search.ts";

export type Count = AnswerOf<"calls.stats">["items"][number];
export type Outcome = Count["outcome"];

export interface Bucket {
  readonly from: string;
  readonly to: string;
  readonly counts: readonly Count[];
}

/** From the bottom up; each with a fill of its own, named in the legend. */
export const STACK: readonly (readonly [Outcome, string])[] = [
  ["ran_alone", "fill-strong"],
  ["ran", "fill-ok"],
  ["approved", "fill-accent"],
  ["waiting", "fill-warn"],
  ["undone", "fill-muted"],
  ["replaced", "fill-line"],
  ["expired", "fill-warn opacity-60"],
  ["rejected", "fill-danger opacity-60"],
  ["refused", "fill-danger"],
  ["failed", "fill-ink"],
  ["unknown", "fill-ink opacity-60"],
];

const HEIGHT = 140;

interface Props {
  readonly buckets: readonly Bucket[];
  readonly onPick: (bucket: Bucket) => void;
}

/** What came of calls over time: stacked bars, each opens its calls, and the same figures as a table. */
export function OutcomeBars({ buckets, onPick }: Props) {
  const total = ({ counts }: Bucket) => counts.reduce((sum, { count }) => sum + count, 0);
  const most = Math.max(1, ...buckets.map(total));
  const seen = STACK.filter(([outcome]) =>
    buckets.some(({ counts }) => counts.some((one) => one.outcome === outcome)),
  );
  const width = 100 / Math.max(1, buckets.length);
  return (
    <section aria-label="What came of calls" className="border-line bg-panel rounded-lg border p-3">
      <h2 className="mb-1">What came of calls</h2>
      <ul className="mb-2 flex flex-wrap gap-x-4 text-xs">
        {seen.map(([outcome, fill]) => (
          <li key={outcome} className="flex items-center gap-1">
            <svg aria-hidden="true" className="size-2.5" viewBox="0 0 1 1">
              <rect width="1" height="1" className={fill} />
            </svg>
            {OUTCOMES[outcome][1]}
          </li>
        ))}
      </ul>
      <svg
        aria-hidden="true"
        viewBox={`0 0 100 ${HEIGHT}`}
        preserveAspectRatio="none"
        className="h-36 w-full"
      >
        <line x1="0" y1={HEIGHT} x2="100" y2={HEIGHT} className="stroke-line" strokeWidth="1" />
        {buckets.map((bucket, index) => {
          let top = HEIGHT;
          return STACK.map(([outcome, fill]) => {
            const count = bucket.counts.find((one) => one.outcome === outcome)?.count ?? 0;
            const height = (count / most) * (HEIGHT - 4);
            top -= height;
            return (
              count > 0 && (
                <rect
                  key={`${bucket.from}-${outcome}`}
                  x={index * width + width * 0.1}
                  y={top}
                  width={width * 0.8}
                  height={height}
                  className={fill}
                />
              )
            );
          });
        })}
        {buckets.map((bucket, index) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: for the mouse; the table has the same as buttons
          <rect
            key={bucket.from}
            data-bar={bucket.from}
            x={index * width}
            y={0}
            width={width}
            height={HEIGHT}
            className="hover:fill-accent/10 cursor-pointer fill-transparent"
            onClick={() => onPick(bucket)}
          >
            <title>{`${momentText(new Date(bucket.from))}: ${numberText(total(bucket))}`}</title>
          </rect>
        ))}
      </svg>
      <details className="mt-1 text-xs">
        <summary className="text-muted">As a table</summary>
        <div className="overflow-x-auto">
          <table
            aria-label="What came of calls, in figures"
            className="w-full text-left tabular-nums"
          >
            <thead>
              <tr>
                <th className="font-medium">From</th>
                {seen.map(([outcome]) => (
                  <th key={outcome} className="px-1 font-medium">
                    {OUTCOMES[outcome][1]}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {buckets
                .filter((bucket) => total(bucket) > 0)
                .map((bucket) => (
                  <tr key={bucket.from}>
                    <td>
                      <button
                        type="button"
                        className="text-accent underline"
                        onClick={() => onPick(bucket)}
                      >
                        {momentText(new Date(bucket.from))}
                      </button>
                    </td>
                    {seen.map(([outcome]) => (
                      <td key={outcome} className="px-1">
                        {numberText(
                          bucket.counts.find((one) => one.outcome === outcome)?.count ?? 0,
                        )}
                      </td>
                    ))}
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}
