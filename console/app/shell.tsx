import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { isSallyportError } from "sallyport/client";
import { client, queryClient } from "./client.ts";
import { isForMe } from "./facts-of.ts";
import { Help } from "./help.tsx";
import { useKeys } from "./keys.ts";

import { useFeed, useLine } from "./live.ts";
import { forgetPageKey, onPageKey } from "./page-key.ts";
import { PAGES } from "./pages.ts";
import { PauseButton, PausedBanner } from "./pause.tsx";
import { inboxQuery, meQuery } from "./queries.ts";
import { takePlace } from "./return-to.ts";
import { SignedOut } from "./signed-out.tsx";
import { setTheme, type Theme, useTheme } from "./theme.ts";
import { Toast } from "./toast.tsx";

/** The frame of every page: navigation, whether it is live, who is signed in, and the pause. */
export function Shell() {
  const { data: me, error } = useQuery(meQuery);
  const line = useLine();
  const [help, setHelp] = useState(false);
  const navigate = useNavigate();
  useKeys({
    "?": () => setHelp(true),
    ...Object.fromEntries(
      PAGES.map(({ to, key }) => [key, () => navigate({ to }).catch(() => {})] as const),
    ),
  });
  if (isSallyportError(error, "unauthenticated") || line === "signed_out") return <SignedOut />;
  return (
    <div className="flex h-dvh flex-col">
      <a
        href="#main"
        className="bg-panel sr-only focus:not-sr-only focus:absolute focus:z-50 focus:p-2"
      >
        Skip to the page
      </a>
      <header className="border-line bg-panel flex flex-wrap items-center gap-x-3 gap-y-1 border-b px-3 py-1.5">
        <Link
          to="/inbox"
          className="text-ink flex items-center gap-1.5 font-semibold hover:no-underline"
        >
          <img src="/icon.svg" alt="" className="size-5" />
          <span className="sr-only sm:not-sr-only">Sallyport</span>
        </Link>
        <Navigation />
        <div className="ml-auto flex items-center gap-2">
          <LiveSign />
          <ThemeChoice />
          <button
            type="button"
            aria-label="Help and keyboard shortcuts"
            onClick={() => setHelp(true)}
            className="border-line text-muted min-h-8 min-w-8 rounded-md border"
          >
            ?
          </button>
          {me !== undefined && <PauseButton me={me} />}
        </div>
      </header>
      <PausedBanner me={me} />
      <main id="main" tabIndex={-1} className="min-h-0 flex-1 overflow-y-auto outline-none">
        <Outlet />
      </main>
      <Toast />
      {/* Only who is signed in hears the feed. */}
      {me !== undefined && <Feed />}
      {help && <Help me={me} onClose={() => setHelp(false)} onSignOut={signOut} />}
    </div>
  );
}

function Feed() {
  useFeed();
  const navigate = useNavigate();
  useEffect(() => {
    // Signed in by a link, which leads to the inbox, and that to its first question: on to where they wanted to go.
    const to = location.pathname.startsWith("/inbox") ? takePlace() : undefined;
    if (to !== undefined) navigate({ to, replace: true }).catch(() => {});
  }, [navigate]);
  // Another tab signed in, perhaps as another person, or out.
  useEffect(() => onPageKey(() => void queryClient.invalidateQueries()), []);
  return null;
}

async function signOut(): Promise<void> {
  await client.signOut();
  forgetPageKey();
  location.assign("/signin");
}

function Navigation() {
  const { data: inbox } = useQuery(inboxQuery);
  const { data: me } = useQuery(meQuery);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const mine = inbox?.items.filter((item) => isForMe(item, me)).length ?? 0;
  // A run belongs to the page that lists the runs.
  const at = path.startsWith("/runs/") ? "/delegations" : path;
  const page = PAGES.find(({ to }) => at.startsWith(to));
  const title = page?.name ?? "Decision";
  const bar = useRef<HTMLElement>(null);
  // On a narrow screen the bar is wider than the screen: scroll to the current page.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page is another place in the bar
  useEffect(() => {
    bar.current
      ?.querySelector("[aria-current=page]")
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [page]);
  useEffect(() => {
    document.title = `${mine > 0 ? `(${mine}) ` : ""}${title} · Sallyport`;
  }, [mine, title]);
  return (
    <nav
      ref={bar}
      aria-label="Pages"
      className="order-last -mx-1 flex w-full overflow-x-auto lg:order-none lg:w-auto"
    >
      {PAGES.map(({ to, name }) => (
        <Link
          key={to}
          to={to}
          aria-current={to === page?.to ? "page" : undefined}
          className={`rounded-md px-2 py-1 whitespace-nowrap hover:no-underline ${to === page?.to ? "bg-accent-soft text-accent font-semibold" : "text-ink hover:bg-raised"}`}
        >
          {name}
          {to === "/inbox" && mine > 0 && (
            <span className="bg-accent text-on-accent ml-1.5 rounded-full px-1.5 text-xs font-semibold">
              {mine}
            </span>
          )}
        </Link>
      ))}
    </nav>
  );
}

const LINES = {
  connecting: ["text-muted", "connecting"],
  open: ["text-ok", "live"],
  broken: ["text-danger", "not live"],
  signed_out: ["text-danger", "signed out"],
} as const;

function LiveSign() {
  const line = useLine();
  const [tone, words] = LINES[line];
  return (
    <span
      role="status"
      className={`flex items-center gap-1 text-xs ${tone}`}
      title="Live update status"
    >
      <span aria-hidden="true" className="size-2 rounded-full bg-current" />
      {words}
    </span>
  );
}

const NEXT: Readonly<Record<Theme, Theme>> = { system: "light", light: "dark", dark: "system" };
const SIGN: Readonly<Record<Theme, string>> = { system: "◐", light: "☀", dark: "☾" };

function ThemeChoice() {
  const theme = useTheme();
  return (
    <button
      type="button"
      onClick={() => setTheme(NEXT[theme])}
      aria-label={`Colours: ${theme}. Change.`}
      className="border-line text-muted min-h-8 min-w-8 rounded-md border"
    >
      {SIGN[theme]}
    </button>
  );
}
