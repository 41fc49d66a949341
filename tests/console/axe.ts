import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

export interface AxeFinding {
  readonly id: string;
  readonly nodes: readonly string[];
}

/** The themes differ in their colours only: in the dark one, contrast is all there is to look at anew. */
export async function axeFindings(
  page: Page,
  theme: "light" | "dark" = "light",
): Promise<readonly AxeFinding[]> {
  await page.evaluate(axe);
  return page.evaluate(
    async (runOnly) => {
      const { axe } = window as unknown as {
        axe: {
          run(
            where: object,
            options: object,
          ): Promise<{
            violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
          }>;
        };
      };
      // Rows of a list are all of one make: the first dozen speaks for the rest.
      const where = {
        include: document,
        exclude: ["li[data-id]:nth-child(n+13)", "ol > li:nth-child(n+13)"],
      };
      const { violations } = await axe.run(where, { runOnly, resultTypes: ["violations"] });
      return violations.map(({ id, nodes }) => ({
        id,
        nodes: nodes
          .slice(0, 3)
          .map(({ html, failureSummary }) => `${html.slice(0, 200)} | ${failureSummary}`),
      }));
    },
    theme === "light" ? TAGS : ["color-contrast"],
  );
}
