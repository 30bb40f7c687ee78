"""Nodes of knowledge: their record, their numbers and their store on the trail."""
