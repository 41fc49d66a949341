import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from "@tanstack/react-router";
import { readSearch } from "../pages/decisions/call-search.ts";
import { InboxPage } from "../pages/inbox/inbox-page.tsx";
import { ItemPage } from "../pages/item/item-page.tsx";
import { readRange } from "../pages/overview/figures.ts";
import { Empty, Problem } from "../ui/panel.tsx";
import { Shell } from "./shell.tsx";

// The inbox loads immediately; other pages load when they are opened.

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => <Empty>This page does not exist.</Empty>,
  errorComponent: ({ error }) => <Problem error={error} />,
});

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/inbox", replace: true });
  },
});
const inbox = createRoute({ getParentRoute: () => root, path: "/inbox", component: InboxPage });
const inboxItem = createRoute({
  getParentRoute: () => root,
  path: "/inbox/$id",
  component: InboxPage,
});
const decision = createRoute({
  getParentRoute: () => root,
  path: "/decisions/$id",
  component: ItemPage,
});
const sessions = createRoute({
  getParentRoute: () => root,
  path: "/sessions",
  component: lazyRouteComponent(
    () => import("../pages/sessions/sessions-page.tsx"),
    "SessionsPage",
  ),
});
const session = createRoute({
  getParentRoute: () => root,
  path: "/sessions/$id",
  component: lazyRouteComponent(() => import("../pages/sessions/session-page.tsx"), "SessionPage"),
});
const tasks = createRoute({
  getParentRoute: () => root,
  path: "/tasks",
  component: lazyRouteComponent(() => import("../pages/tasks/tasks-page.tsx"), "TasksPage"),
});
const delegations = createRoute({
  getParentRoute: () => root,
  path: "/delegations",
  component: lazyRouteComponent(
    () => import("../pages/delegations/delegations-page.tsx"),
    "DelegationsPage",
  ),
});
const run = createRoute({
  getParentRoute: () => root,
  path: "/runs/$id",
  component: lazyRouteComponent(() => import("../pages/runs/run-page.tsx"), "RunPage"),
});
const conversations = createRoute({
  getParentRoute: () => root,
  path: "/conversations",
  component: lazyRouteComponent(
    () => import("../pages/conversations/conversations-page.tsx"),
    "ConversationsPage",
  ),
});
const conversation = createRoute({
  getParentRoute: () => root,
  path: "/conversations/$id",
  component: lazyRouteComponent(
    () => import("../pages/conversations/conversation-page.tsx"),
    "ConversationPage",
  ),
});
const rules = createRoute({
  getParentRoute: () => root,
  path: "/rules",
  component: lazyRouteComponent(() => import("../pages/rules/rules-page.tsx"), "RulesPage"),
});
const tools = createRoute({
  getParentRoute: () => root,
  path: "/tools",
  component: lazyRouteComponent(() => import("../pages/tools/tools-page.tsx"), "ToolsPage"),
});
const audit = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  component: lazyRouteComponent(() => import("../pages/audit/audit-page.tsx"), "AuditPage"),
});
const decisions = createRoute({
  getParentRoute: () => root,
  path: "/decisions",
  validateSearch: readSearch,
  component: lazyRouteComponent(
    () => import("../pages/decisions/decisions-page.tsx"),
    "DecisionsPage",
  ),
});
const overview = createRoute({
  getParentRoute: () => root,
  path: "/overview",
  validateSearch: readRange,
  component: lazyRouteComponent(
    () => import("../pages/overview/overview-page.tsx"),
    "OverviewPage",
  ),
});

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    inbox,
    inboxItem,
    decision,
    sessions,
    session,
    tasks,
    delegations,
    run,
    conversations,
    conversation,
    rules,
    tools,
    audit,
    decisions,
    overview,
  ]),
  defaultPreload: "intent",
  // Around the page alone: an error in it leaves the kill switch usable.
  defaultErrorComponent: ({ error }) => <Problem error={error} />,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
