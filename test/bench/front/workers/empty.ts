// The floor: a Worker that only answers.
export const worker = { fetch: () => Response.json({ text: 'nothing' }) };
