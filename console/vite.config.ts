import tailwind from "@tailwindcss/vite";
import { defaultClientConditions, defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  plugins: [tailwind()],
  // `sallyport/client` is our own source, as everywhere in this repository.
  resolve: { conditions: ["sallyport-source", ...defaultClientConditions] },
  build: {
    outDir: "../dist/console",
    emptyOutDir: true,
    target: "es2024",
    // The content policy allows no inline code and no data URLs but pictures.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      onLog(level, log, handler) {
        // Marks for servers that render React; there is none here.
        if (log.code !== "MODULE_LEVEL_DIRECTIVE") handler(level, log);
      },
    },
  },
});
