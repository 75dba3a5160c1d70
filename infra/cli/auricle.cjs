#!/usr/bin/env node
// Starts the command line under a Node that reads TypeScript; see infra/local/node.cjs.
const path = require('node:path');
process.argv.splice(2, 0, path.join(__dirname, 'main.ts'));
require('../local/node.cjs');
