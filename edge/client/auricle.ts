// The client package: `npm run build:client` bundles this file and its types.
export * from './contract.ts';
export * from './events.ts';
export * from './microphone.ts';
export * from './stream.ts';
