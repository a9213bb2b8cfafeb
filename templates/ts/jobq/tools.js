// Fails with a clear message if a build tool is missing.

import { existsSync } from 'node:fs'

for (const tool of ['esbuild', 'componentize-qjs', 'tsc']) {
  if (!existsSync(new URL(`../node_modules/.bin/${tool}`, import.meta.url))) {
    console.error(`error: ${tool} is missing: npm install`)
    process.exit(1)
  }
}
