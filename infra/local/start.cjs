// `npm start`.
require('./run-bundled.cjs').run('infra/local/main.ts');
