import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./app/client.ts";
import { listenToKeys } from "./app/keys.ts";
import { inboxQuery, meQuery, switchQuery, toolsQuery } from "./app/queries.ts";
import { router } from "./app/router.tsx";
import { applyTheme } from "./app/theme.ts";
import "./styles.css";

applyTheme();
listenToKeys();
// On their way while the page is still being put together. What fails is shown where it is used.
for (const query of [inboxQuery, meQuery, toolsQuery, switchQuery]) {
  queryClient.prefetchQuery(query as typeof meQuery).catch(() => {});
}

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
