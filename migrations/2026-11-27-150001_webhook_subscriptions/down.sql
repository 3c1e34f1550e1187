-- Each process writes events for the webhooks of its own configuration again.
DROP TABLE webhook_subscriptions;
