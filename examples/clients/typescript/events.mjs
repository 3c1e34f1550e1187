// The types of events and of webhooks' calls: node events.mjs ASYNCAPI FOLDER.
import { mkdirSync, readFileSync } from 'node:fs';
import { TypeScriptFileGenerator } from '@asyncapi/modelina';

const [document, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const generator = new TypeScriptFileGenerator({ modelType: 'interface', rawPropertyNames: true });
const models = await generator.generateToFiles(readFileSync(document, 'utf8'), folder, { exportType: 'named' });
if (!models.some((model) => model.modelName === 'WebhookCall')) throw new Error(`${document}: no type WebhookCall`);
