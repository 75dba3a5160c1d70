#!/usr/bin/env node
// Starts the command line from the bundle of the source, under a Node that runs it; see infra/local/node.cjs.
require('../local/run-bundled.cjs').run('infra/cli/main.ts');
