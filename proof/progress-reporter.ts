import type { Reporter, TestModule, TestSpecification } from "vitest/node";

/** One line for each file that is done, with how far the whole is and how long the rest may take. */
// biome-ignore lint/style/noDefaultExport: vitest takes a reporter from its file's default export
export default class ProgressReporter implements Reporter {
  #total = 0;
  #done = 0;
  readonly #started = performance.now();

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#total = specifications.length;
  }

  onTestModuleEnd(module: TestModule): void {
    this.#done += 1;
    const passed = [...module.children.allTests("passed")].length;
    const failed = [...module.children.allTests("failed")].length;
    const spent = (performance.now() - this.#started) / 1_000;
    const left = (spent / this.#done) * (this.#total - this.#done);
    const state =
      failed > 0 || module.state() === "failed" ? `${failed} FAILED` : `${passed} passed`;
    const seconds = (module.diagnostic().duration / 1_000).toFixed(1);
    process.stderr.write(
      `${String(this.#done).padStart(4)}/${this.#total}  ${seconds.padStart(6)} s  ${state.padEnd(10)}  ${module.relativeModuleId}  (${about(spent)}, about ${about(left)} left)\n`,
    );
  }
}

function about(seconds: number): string {
  const whole = Math.round(seconds);
  return whole < 90 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
