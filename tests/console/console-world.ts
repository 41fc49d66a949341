// The whole product in one process: an SQLite file, a port with the warehouse's tools, the server with the built console, and a
// real browser in front of it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { type Client, createClient, signIn } from "../../src/client/index.ts";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import type { Session } from "../../src/gate/session.ts";
import { createServer, type ServedFlow, type Server } from "../../src/http/index.ts";
import type { Role } from "../../src/model/identity.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import type { TenantStore } from "../../src/store/store.ts";
import { createTaskList, type TaskList } from "../../src/tasks/create-task-list.ts";

import { type Clock, systemClock } from "../../src/util/clock.ts";
import { createIds } from "../../src/util/ids.ts";
import { systemRandom } from "../../src/util/random.ts";
import { sampleVerdictValidator } from "../support/validators.ts";
import { launchBrowser } from "./browser.ts";
import { builtConsole } from "./built-console.ts";
import { createWarehouse, type Warehouse } from "./console-tools.ts";

const TENANT = "acme";

export interface ConsoleWorld extends Warehouse, AsyncDisposable {
  readonly server: Server;
  /** Starts the server anew under its old address, as after a deploy. */
  restart(): Promise<void>;
  readonly gate: Gate;
  readonly store: TenantStore;
  readonly tasks: TaskList;
  readonly browser: Browser;
  /** What broke in the server, in a page, or against the content policy; empty in a good run. */
  readonly problems: string[];
  /** A session of an agent, as the server lists it. */
  session(agent: string): Promise<Session>;
  client(role: Role, subject?: string): Promise<Client>;
  /** A window of a person who signed in by a link. */
  signIn(options?: SignIn): Promise<Page>;
}

export interface SignIn {
  readonly subject?: string;
  readonly roles?: readonly Role[];
  readonly theme?: "light" | "dark";
  readonly size?: { readonly width: number; readonly height: number };
  /** Where to go after signing in. */
  readonly to?: string;
}

/** `clock`: the server's, which says how old a sign-in is. */
export async function openConsole(
  options: {
    readonly clock?: Clock;
    /** An agent to talk with. */
    readonly flow?: (of: { readonly gate: Gate; readonly store: TenantStore }) => ServedFlow;
  } = {},
): Promise<ConsoleWorld> {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-console-"));
  const store = sqliteStore({ file: path.join(folder, "store.db") });
  const own = store.tenant(TENANT);
  const warehouse = createWarehouse();
  const gate = createGate({
    store,
    tenant: TENANT,
    tools: warehouse.tools,
    validators: {
      tech: sampleVerdictValidator("schema"),
      business: sampleVerdictValidator("limits"),
    },
    guard: allowAlways,
    policy: NO_RULES,
    // One person plays all reviewers here.
    review: [{ requires: [{ name: "review", count: 1 }], editorMayApprove: true }],
  });
  const tasks = createTaskList({ store: own.tasks });
  const ids = createIds({ clock: systemClock, random: systemRandom });
  const problems: string[] = [];
  const files = await builtConsole();
  const { flow, ...rest } = options;
  const flows = flow === undefined ? {} : { [TENANT]: flow({ gate, store: own }) };
  const start = (listenPort: number) =>
    createServer({
      flows,
      store,
      listenPort,
      gates: { [TENANT]: { ...gate, tasks } },
      console: files,
      ...rest,
      onProblem: (error) => problems.push(`server: ${error}`),
    });
  let server = await start(0);
  const browser = await launchBrowser();

  async function openWindow(options: SignIn = {}): Promise<Page> {
    const { subject = "person:ada", roles = ["reviewer", "operator"], theme = "light" } = options;
    const { size = { width: 1_400, height: 900 }, to = "/inbox" } = options;
    const context = await browser.newContext({
      colorScheme: theme,
      viewport: size,
      // Otherwise a machine without a language of its own gives one that no browser of a person has.
      locale: "en-GB",
    });
    const page = await context.newPage();
    // Short of the test's own: then the failure says what was waited for.
    page.setDefaultTimeout(60_000);
    watch(page, problems);
    await page.goto(await server.signInLink({ tenant: TENANT, subject, roles }));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(`${server.url}/inbox**`);
    if (to !== "/inbox") await page.goto(server.url + to);
    await page.getByText("live", { exact: true }).waitFor();
    return page;
  }

  return {
    ...warehouse,
    get server() {
      return server;
    },
    async restart() {
      server = await start(Number(new URL(server.url).port));
    },
    gate,
    store: own,
    tasks,
    browser,
    problems,
    async session(agent) {
      const id = `run-${ids.next()}`;
      await own.sessions.open({ id, agent, owner: "", workingDirectory: "" });
      return gate.sessions.open({ id, agent });
    },
    async client(role, subject = `person:${role}`) {
      const { url } = server;
      if (role === "agent" || role === "auditor") {
        const token = await server.makeToken({ tenant: TENANT, subject, roles: [role] });
        return createClient({ url, token });
      }
      const link = await server.signInLink({ tenant: TENANT, subject, roles: [role] });
      return createClient({ url, session: (await signIn({ link })).session });
    },
    signIn: openWindow,
    async [Symbol.asyncDispose]() {
      await browser.close();
      await server.close();
      await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Errors of scripts and refusals of the content policy are failures, whatever the test is about. */
function watch(page: Page, problems: string[]): void {
  page.on("pageerror", (error) => problems.push(`page: ${error.message}`));
  page.on("console", (message) => {
    // The browser itself logs every answer above 399; those are answers that tests ask for.
    const isOwn = !message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && isOwn) problems.push(`console: ${message.text()}`);
  });
}

export async function closeContext(page: Page): Promise<void> {
  const context: BrowserContext = page.context();
  await context.close();
}

/** Nothing can be approved in the first half second; what is refused after that is refused for another reason. */
export async function seen(page: Page): Promise<void> {
  await page.waitForTimeout(800);
}

let calls = 0;

/** Asks for a call that waits for a person; gives the id of the question. */
export async function propose(session: Session, tool: string, input: object): Promise<string> {
  calls += 1;
  const request = { callId: `c-${calls}`, tool, input: input as never, messageId: `m-${calls}` };
  const answer = await session.call(request);
  if (answer.answer !== "pending") throw new Error(`${tool}: ${answer.answer}: ${answer.text}`);
  return answer.interactionId;
}
