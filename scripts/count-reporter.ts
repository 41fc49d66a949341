import type { SerializedError } from "vitest";
import type { Reporter, TestModule } from "vitest/node";

/**
 * Ends the output of a test run with one line that a program can read: `N passed, N failed, N skipped`.
 * It is written when the process exits, because the other reporters and the teardown speak until then.
 */
// biome-ignore lint/style/noDefaultExport: vitest takes a reporter from its file's default export
export default class CountReporter implements Reporter {
  #passed = 0;
  #failed = 0;
  #skipped = 0;

  onInit(): void {
    process.once("exit", () => {
      // A run in which nothing was tested proves nothing, whatever the filter or the skips were.
      if (this.#passed + this.#failed === 0) process.exitCode = 1;
      process.stdout.write(
        `${this.#passed} passed, ${this.#failed} failed, ${this.#skipped} skipped\n`,
      );
    });
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    this.#passed = 0;
    this.#skipped = 0;
    // Errors outside any test (an unhandled rejection, a failing setup) fail the run, so they count.
    this.#failed = errors.length;
    for (const module of modules) {
      const failedBefore = this.#failed;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") this.#passed += 1;
        else if (state === "failed") this.#failed += 1;
        else this.#skipped += 1;
      }
      // A file that could not be loaded, or whose hook threw, has failed without a failed test.
      if (module.state() === "failed" && this.#failed === failedBefore) this.#failed += 1;
    }
  }
}
