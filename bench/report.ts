/** One measured number beside a floor of the same run. `goal` is the least (or, for costs, the most) ratio we accept. */
export interface Result {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly against?: string;
  readonly ratio?: number;
  readonly goal?: string;
}

const WIDTHS = [28, 12, 12, 22, 8, 10] as const;

export function printHeader(): void {
  print(["name", "value", "unit", "against", "ratio", "goal"]);
  print(WIDTHS.map((width) => "-".repeat(width - 1)));
}

export function printResult(result: Result): void {
  print(cellsOf(result));
}

export function cellsOf({ name, value, unit, against = "", ratio, goal = "" }: Result): string[] {
  const shown = ratio === undefined ? "" : ratio.toFixed(2);
  return [name, amount(value), unit, against, shown, goal];
}

function amount(value: number): string {
  return value >= 99.5 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3);
}

function print(cells: readonly string[]): void {
  console.log(cells.map((cell, index) => cell.padEnd(WIDTHS[index] ?? 0)).join(""));
}
