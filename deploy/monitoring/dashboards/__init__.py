"""Grafana's dashboards as code.

    boards -> charts/vramgate/dashboards/NAME.json

One file a dashboard; `make dashboards` writes them, and a test compares.
"""
