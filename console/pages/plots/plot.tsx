import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { momentText, tickText } from "../../app/locale.ts";
import { useTheme } from "../../app/theme.ts";

export interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** A colour of the theme, like `ok`. */
  readonly tone: "accent" | "ok" | "warn" | "danger";
  readonly bars?: boolean;
}

interface Props {
  readonly title: string;
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly unit: string;
  readonly max?: number;
}

const HEIGHT = 200;

/** One plot, and the same figures as a table for screen readers. */
export function Plot({ title, times, lines, unit, max }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme means other colours
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const draw = () => {
      const options = optionsOf(element, { lines, unit, ...(max === undefined ? {} : { max }) });
      return new uPlot(options, [[...times], ...lines.map(({ values }) => [...values])], element);
    };
    let plot = draw();
    const again = () => {
      plot.destroy();
      plot = draw();
    };
    const size = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: HEIGHT }),
    );
    size.observe(element);
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", again);
    return () => {
      size.disconnect();
      system.removeEventListener("change", again);
      plot.destroy();
    };
  }, [times, lines, unit, max, theme]);
  return (
    <section aria-label={title} className="border-line bg-panel min-w-0 rounded-lg border p-3">
      <h2 className="mb-1">
        {title} <span className="text-muted font-normal">({unit})</span>
      </h2>
      <ul className="mb-1 flex flex-wrap gap-x-4 text-xs">
        {lines.map(({ name, tone }) => (
          <li key={name} className="flex items-center gap-1">
            <span aria-hidden="true" className={`size-2.5 rounded-sm ${DOTS[tone]}`} />
            {name}
          </li>
        ))}
      </ul>
      <div ref={place} aria-hidden="true" className="w-full overflow-hidden" />
      <Figures times={times} lines={lines} />
    </section>
  );
}

const DOTS = { accent: "bg-accent", ok: "bg-ok", warn: "bg-warn", danger: "bg-danger" } as const;

function Figures({ times, lines }: Pick<Props, "times" | "lines">) {
  const rows = times
    .map((time, at) => ({ time, values: lines.map(({ values }) => values[at] ?? null) }))
    .filter(({ values }) => values.some((value) => value !== null && value !== 0));
  return (
    <details className="mt-1 text-xs">
      <summary className="text-muted">As a table</summary>
      <table className="w-full text-left tabular-nums">
        <thead>
          <tr>
            <th className="font-medium">from</th>
            {lines.map(({ name }) => (
              <th key={name} className="font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ time, values }) => (
            <tr key={time}>
              <td>{momentText(new Date(time * 1_000))}</td>
              {values.map((value, at) => (
                <td key={lines[at]?.name}>{value === null ? "" : Math.round(value * 10) / 10}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function optionsOf(
  element: HTMLElement,
  { lines, unit, max }: Pick<Props, "lines" | "unit" | "max">,
): uPlot.Options {
  const ink = colourOf(element, "muted");
  const grid = { stroke: colourOf(element, "line"), width: 1 };
  const axis = { stroke: ink, grid, ticks: grid, font: "11px system-ui, sans-serif" };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { points: { size: 6 } },
    scales: { y: { range: (_plot, _low, high) => [0, max ?? Math.max(1, high * 1.1)] } },
    axes: [
      {
        ...axis,
        space: 70,
        values: (_plot, ticks) => ticks.map((tick) => tickText(new Date(tick * 1_000))),
      },
      {
        ...axis,
        size: 50,
        values: (_plot, ticks) =>
          ticks.map((tick) => (unit === "percent" ? `${tick}%` : String(tick))),
      },
    ],
    series: [
      {},
      ...lines.map(({ name, tone, bars }) => {
        const stroke = colourOf(element, tone);
        const paths = bars ? uPlot.paths.bars?.({ size: [0.7, 40] }) : undefined;
        return {
          label: name,
          stroke,
          width: 2,
          spanGaps: false,
          points: { show: !bars, size: 5 },
          ...(bars ? { fill: stroke } : {}),
          ...(paths === undefined ? {} : { paths }),
        };
      }),
    ],
  };
}

/** Canvas has no CSS variables: the colour is read from an element. */
function colourOf(element: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--color-${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
